"""A whole Tierscope on a home and ports of its own: the Procfile's own commands, started and stopped by a test."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import httpx
import redis

from dashboard.embedded_valkey import make_folders, server_command
from tests.e2e.made_home import copy_first_run
from tests.model_cache import MODEL_CACHE, STATIC_CACHE

ROOT = Path(__file__).parents[2]
T = TypeVar("T")


class Stack:
    """Processes by their names in the Procfile. `engine_app` replaces the engine worker's Celery application.

    Without it the engine finds its model unpacked from the second stack on, and all find the static files collected and
    an empty database migrated, with its administrator.
    """

    def __init__(
        self,
        home: Path,
        *,
        names: Sequence[str] = ("valkey", "web", "engine"),
        engine_app: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.home = home
        self.port = free_port()
        self.base_url = f"http://127.0.0.1:{self.port}"
        self._names = names
        self._engine_app = engine_app
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TIERSCOPE_")}
        for name in ("REDIS_URL", "DATABASE_URL"):
            kept.pop(name, None)
        self.env = kept | {
            "TIERSCOPE_HOME": str(home),
            "PORT": str(self.port),
            "PYTHONPATH": str(ROOT),
            "TIERSCOPE_SAMPLE_TRAFFIC": "0",
            **(env or {}),
        }
        # The server may change while it lives.
        self._http = httpx.Client(base_url=self.base_url, limits=httpx.Limits(max_keepalive_connections=0), timeout=10)
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        if engine_app is None and not (home / "models").exists():
            MODEL_CACHE.mkdir(mode=0o700, exist_ok=True)
            (home / "models").symlink_to(MODEL_CACHE)
        prepare(home)

    # -- life --------------------------------------------------------------------------------------------------------
    def start(self, seconds: float = 240) -> None:
        """Returns when /healthz says that everything is up."""
        self.manage("firstrun")
        for name in self._names:
            self.start_process(name)
        self.wait_until(lambda: self.health()[0] == 200, "the stack is up", seconds)

    def start_process(self, name: str) -> None:
        argv = [sys.executable, "manage.py", "launch", name]
        if name == "valkey":  # what that becomes, without 0.4 s of Django before it
            make_folders(self.home / "valkey.sock", self.home / "valkey")
            argv = server_command(self.home / "valkey.sock", self.home / "valkey")
        if name == "engine" and self._engine_app:
            argv = [
                *(sys.executable, "-m", "celery", "--skip-checks", "--app", self._engine_app),
                *("worker", "--pool", "threads"),
                *("--queues", "engine.local", "--hostname", "engine-local@%h", "--concurrency", "32"),
                *("--loglevel", "INFO", "--without-gossip", "--without-mingle"),
            ]
        with self.log(name).open("ab") as log:
            self.processes[name] = subprocess.Popen(argv, cwd=ROOT, env=self.env, stdout=log, stderr=log)

    def kill(self, name: str, how: signal.Signals = signal.SIGKILL, seconds: float = 40) -> int:
        """Sends the signal and waits for the end. The exit status."""
        process = self.processes.pop(name)
        process.send_signal(how)
        return process.wait(seconds)

    def restart(self, name: str, how: signal.Signals = signal.SIGTERM) -> None:
        self.kill(name, how)
        self.start_process(name)

    def stop(self) -> None:
        for name in ("web", "worker", "engine", "valkey"):
            if name in self.processes:
                try:
                    self.kill(name, signal.SIGTERM)
                except subprocess.TimeoutExpired:
                    self.kill_hard(name)

    def kill_hard(self, name: str) -> None:
        for process in [self.processes.pop(name, None)]:
            if process is not None:
                process.kill()
                process.wait(10)

    def log(self, name: str) -> Path:
        return self.home / f"{name}.log"

    # -- looks -------------------------------------------------------------------------------------------------------
    @property
    def api_key(self) -> str:
        return (self.home / "api-key").read_text().strip()

    @property
    def admin_password(self) -> str:
        return (self.home / "admin-password").read_text().strip()

    @property
    def database(self) -> Path:
        return self.home / "tierscope.sqlite3"

    def valkey(self) -> redis.Redis:
        return redis.Redis(unix_socket_path=str(self.home / "valkey.sock"), decode_responses=True, socket_timeout=5)

    def health(self) -> tuple[int, dict[str, Any]]:
        try:
            answer = self._http.get("/healthz", timeout=5)
            return answer.status_code, answer.json()
        except (httpx.HTTPError, ValueError):
            return 0, {}

    def metrics(self) -> str:
        return self._http.get("/metrics").raise_for_status().text

    def openai(self, **options: Any) -> Any:
        import openai

        return openai.OpenAI(base_url=f"{self.base_url}/v1", api_key=self.api_key, max_retries=0, **options)

    def manage(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments], cwd=ROOT, env=self.env, capture_output=True, timeout=60
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode().strip()

    def wait_until(self, is_true: Callable[[], T], what: str, seconds: float = 20) -> T:
        """`is_true()` as soon as it is; a process that ended meanwhile fails at once, with its log."""
        deadline = time.monotonic() + seconds
        while not (found := is_true()):
            for name, process in self.processes.items():
                assert process.poll() is None, f"{name} ended with {process.returncode}:\n{self._tail(name)}"
            assert time.monotonic() < deadline, f"not within {seconds} s: {what}\n{self._tails()}"
            time.sleep(0.05)
        return found

    def _tails(self) -> str:
        return "\n".join(f"--- {name}\n{self._tail(name)}" for name in self.processes)

    def _tail(self, name: str) -> str:
        with contextlib.suppress(OSError):
            return self.log(name).read_text(errors="replace")[-2000:]
        return ""


def prepare(home: Path) -> None:
    """What takes a first start seconds and is always the same: a database with an administrator, and static files,
    which the first start of all collects.
    """
    copy_first_run(home)
    if not (home / "static").exists():
        STATIC_CACHE.mkdir(mode=0o700, parents=True, exist_ok=True)
        (home / "static").symlink_to(STATIC_CACHE)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
