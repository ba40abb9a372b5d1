"""The web process: uvicorn, and the word to all that is open when it is asked to stop.

uvicorn alone waits for open answers and then cuts them off in the middle, which a client cannot tell from a crash.
"""

import os
import sys
from types import FrameType

import uvicorn

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")

from django.conf import settings

from dashboard import stopping

# For what must end by itself after `ANSWER_SECONDS`, and looks once a second whether it must.
_DRAIN_SECONDS = int(stopping.ANSWER_SECONDS) + 3


class Server(uvicorn.Server):
    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        stopping.process.begin()
        super().handle_exit(sig, frame)


def configured() -> uvicorn.Config:
    return uvicorn.Config(
        "dashboard.asgi:application",
        host=settings.BIND,
        port=settings.PORT,
        lifespan="off",
        # By default uvicorn believes anybody on this machine, who would have a new address for each guessed password.
        proxy_headers=bool(settings.TRUSTED_PROXIES),
        forwarded_allow_ips=settings.TRUSTED_PROXIES,
        access_log=False,
        log_level="warning",
        timeout_graceful_shutdown=_DRAIN_SECONDS,
    )


def main() -> int:
    server = Server(configured())
    server.run()
    return int(not server.started)


if __name__ == "__main__":
    sys.exit(main())
