"""A real web process on a free port with a home of its own, and engines that can be started and stopped beside it."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.e2e import stack

ROOT = Path(__file__).parents[2]


class AdminStack:
    """`url` is the web process; `engine()` runs an engine for as long as its block lasts."""

    def __init__(self, home: Path, redis_url: str) -> None:
        self.home = home
        self.password = ""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._http = httpx.Client(base_url=self.url)
        self._env = os.environ | {
            "TIERSCOPE_HOME": str(home),
            "DATABASE_URL": f"sqlite:///{home / 'tierscope.sqlite3'}",
            "REDIS_URL": redis_url,
            "PORT": str(self.port),
            "DJANGO_SETTINGS_MODULE": "dashboard.settings",
            "PYTHONPATH": str(ROOT),
        }

    def manage(self, *arguments: str) -> None:
        command = [sys.executable, "manage.py", *arguments]
        subprocess.run(command, cwd=ROOT, env=self._env, check=True, stdout=subprocess.DEVNULL)

    def prepare(self) -> None:
        """Database, static files and the administrator `admin`."""
        stack.prepare(self.home)
        self.manage("firstrun")
        self.password = (self.home / "admin-password").read_text().strip()

    @contextmanager
    def web(self) -> Iterator[None]:
        with self._process("manage.py", "launch", "web") as process:
            deadline = time.monotonic() + 30
            while not self._answers():
                assert process.poll() is None, f"the web process ended with {process.returncode}"
                assert time.monotonic() < deadline, "the web process does not answer"
                time.sleep(0.05)
            yield

    @contextmanager
    def engine(self) -> Iterator[None]:
        with self._process("-m", "tests.browser.sizes_only_engine"):
            yield

    def _answers(self) -> bool:
        try:
            return self._http.get("/login/").status_code == 200
        except httpx.TransportError:
            return False

    @contextmanager
    def _process(self, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        process = subprocess.Popen([sys.executable, *arguments], cwd=ROOT, env=self._env)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(15)
