"""`python -m bench._text_server`: serves what engines tell, in a process of its own, so that its time is not ours.

Says its port on its first line; `/ENGINE/metrics` is the text of engine number ENGINE at this moment.
"""

import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from bench._origins import STEP, Origins


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        number = int(self.path.split("/")[1])
        text = Origins(number).text(int(time.time() - _began) // STEP, "0").encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args: object) -> None:
        pass


_began = time.time()

if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    print(server.server_port, flush=True)
    server.serve_forever()
