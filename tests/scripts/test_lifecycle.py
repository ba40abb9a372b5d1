"""One real `make run`, from nothing to nothing: started, a process killed and replaced, stopped without an orphan."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from scripts import earlier
from scripts.run_folder import RunFolder
from tests.e2e.stack import prepare
from tests.model_cache import MODEL_CACHE

ROOT = Path(__file__).parents[2]
_SECONDS = 90


class Run:
    """A launcher with a home of its own, and the processes that carry that home in their environment."""

    def __init__(self, home: Path) -> None:
        self.home = home
        home.chmod(0o755)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self._http = httpx.Client(base_url=f"http://127.0.0.1:{self.port}")
        kept = {name: value for name, value in os.environ.items() if name not in ("REDIS_URL", "DATABASE_URL")}
        ours = {"TIERSCOPE_HOME": str(home), "PORT": str(self.port), "TIERSCOPE_SAMPLE_TRAFFIC": "0"}
        self.console = home / "console"
        with self.console.open("w") as console:
            self.launcher = subprocess.Popen(
                ["make", "run"], cwd=ROOT, env=kept | ours, stdin=subprocess.DEVNULL, stderr=console, stdout=console
            )

    def processes(self) -> list[psutil.Process]:
        return [process for process in psutil.process_iter() if self._is_ours(process)]

    def find(self, words: str) -> psutil.Process | None:
        """The process whose command line contains the words, once it is what it will be; others' are not asked more."""
        for process in psutil.process_iter():
            if words in " ".join(command_line(process)) and self._is_ours(process):
                return process
        return None

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            return process.environ().get("TIERSCOPE_HOME") == str(self.home)
        except psutil.Error:
            return False

    def answers(self) -> bool:
        try:
            return self._http.get("/login/", timeout=5).status_code == 200
        except httpx.TransportError:
            return False


def command_line(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def wait_until(condition: Callable[[], object], what: str, run: Run) -> None:
    deadline = time.monotonic() + _SECONDS
    while not condition():
        assert run.launcher.poll() is None or what == "everything is gone", run.console.read_text()[-4000:]
        assert time.monotonic() < deadline, f"{what} takes too long\n{run.console.read_text()[-4000:]}"
        time.sleep(0.1)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (home := tmp_path / "a ;home #1 50%41").mkdir()
    return home


@pytest.fixture
def earlier_start(home: Path) -> None:
    """Made what a first one makes, all weights unpacked."""
    prepare(home)
    (home / "models").symlink_to(MODEL_CACHE)


@pytest.fixture
def run(home: Path) -> Iterator[Run]:
    run = Run(home)
    yield run
    for process in [*run.processes()]:
        process.kill()
    run.launcher.wait(10)


@pytest.mark.slow
def test_it_starts_replaces_a_killed_engine_worker_and_stops_without_an_orphan(run: Run) -> None:
    wait_until(run.answers, "the first page", run)
    wait_until(lambda: run.find("launch engine"), "the engine worker", run)
    killed = run.find("launch engine")
    assert killed is not None
    killed.kill()
    wait_until(lambda: (found := run.find("launch engine")) and found.pid != killed.pid, "the next engine worker", run)
    assert run.answers()

    run.launcher.send_signal(signal.SIGTERM)
    run.launcher.wait(_SECONDS)
    wait_until(lambda: not run.processes(), "everything is gone", run)
    console = run.console.read_text()
    assert "Stopped." in console
    assert "Traceback" not in console.split("Stopping …")[1]
    for name in ("admin-password", "api-key"):
        assert (run.home / name).stat().st_mode & 0o777 == 0o600
    assert [path.name for path in run.home.iterdir() if path.stat().st_mode & 0o077] == ["console"], "others may look"


@pytest.mark.slow
@pytest.mark.usefixtures("earlier_start")
def test_nothing_outlives_a_launcher_that_was_killed(run: Run) -> None:
    wait_until(run.answers, "the first page", run)
    launcher = run.find("scripts.run")
    assert launcher is not None
    launcher.kill()
    run.launcher.wait(_SECONDS)
    # The next start waits for what the killed one left.
    assert earlier.finish(RunFolder.of(run.home), _SECONDS) == []
    wait_until(lambda: not run.processes(), "everything is gone", run)
