"""A real HTTP server on a port of its own that answers what a test says, and remembers what it was sent."""

import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


@dataclass(frozen=True)
class Answer:
    body: str | bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int = 200


@dataclass
class Served:
    url: str
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)  # path and headers of every request
    bodies: list[str] = field(default_factory=list)  # of those that had one


@contextmanager
def serving(
    answer: Callable[[str], Answer], *, certificate: Path | None = None, client_ca: Path | None = None
) -> Iterator[Served]:
    """`answer` is given the path. With a `certificate` (PEM with its key) it speaks TLS, with a `client_ca` only to
    whoever has a certificate by that authority.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.asked.append((self.path, dict(self.headers.items())))
            found = answer(self.path)
            body = found.body if isinstance(found.body, bytes) else found.body.encode()
            self.send_response(found.status)
            for name, value in {"Content-Length": str(len(body)), **found.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            served.bodies.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.do_GET()

        def log_message(self, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

        def handle_error(self, request: object, client_address: object) -> None:
            """A client that hangs up is what the test wants."""

    server = Server(("127.0.0.1", 0), Handler)
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        if client_ca:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(client_ca)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    served = Served(f"{'https' if certificate else 'http'}://127.0.0.1:{server.server_port}")
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def trickling(first: bytes, then: bytes, *, every_seconds: float = 0.02) -> Iterator[int]:
    """A port where whoever connects is sent `first`, and `then` again and again."""
    is_over = threading.Event()

    def send(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.sendall(first)
            while not is_over.wait(every_seconds):
                connection.sendall(then)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=send, args=(listening.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=accept, daemon=True).start()
        yield listening.getsockname()[1]
        is_over.set()
        listening.shutdown(socket.SHUT_RDWR)


def self_signed(folder: Path, name: str = "IP:127.0.0.1") -> Path:
    """A certificate for that name with its key, in one PEM file, made by openssl."""
    file = folder / f"{name.replace(':', '-')}.pem"
    key = file.with_suffix(".key")
    made = [
        *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test"),
        *("-addext", f"subjectAltName={name}", "-keyout", str(key), "-out", str(file)),
    ]
    subprocess.run(made, check=True, capture_output=True, timeout=60)
    file.write_text(file.read_text() + key.read_text())
    return file
