"""The launcher behind `make run`: prepares, starts supervisord, says when it is ready, stops everything on a signal.

Knows nothing about the processes but the Procfile. It is the one process that a terminal's Ctrl-C reaches.
"""

import ctypes
import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType
from typing import IO

from scripts import earlier, environment
from scripts.follow import Follower
from scripts.readiness import Probe, connect
from scripts.supervision import Program, config_path, log_path, read_programs, render, stop_seconds

ROOT = Path(__file__).resolve().parents[1]
_PR_SET_PDEATHSIG = 1
_POLL_SECONDS = 0.5
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StartError(Exception):
    """Why it cannot start, in one sentence for the person in front of the terminal."""


class Launcher:
    """One run, from the first check to the last process gone."""

    def __init__(self, env: environment.Environment) -> None:
        self.env = env
        self.programs = read_programs(ROOT / "Procfile", without=env.outside_processes)
        self.is_stopping = False

    def run(self) -> int:
        """Returns the exit code: 0 after a stop that was asked for. Raises StartError."""
        is_new = not self.env.password_file.exists()
        for number in _STOP_SIGNALS:
            signal.signal(number, self._on_signal)
        with lock(self.env.home), Follower(self._logs()):
            finish_earlier(self.env.home, stop_seconds(self.programs))
            check_port(self.env.bind, self.env.port)
            prepare(self.env.child_variables)
            if self.is_stopping:
                return 0
            supervisord = start_supervisord(self.programs, self.env)
            try:
                self._watch(supervisord, is_new)
            finally:
                code = stop(supervisord, stop_seconds(self.programs))
        say("Stopped." if self.is_stopping else f"supervisord ended by itself: {self.env.home}/logs says why.")
        return 0 if self.is_stopping else code or 1

    def _logs(self) -> dict[str, Path]:
        (self.env.home / "logs").mkdir(mode=0o700, parents=True, exist_ok=True)
        return {program.name: log_path(self.env.home, program.name) for program in self.programs}

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        """No lock and no buffer in here: a second signal may interrupt it anywhere, and would wait for the first."""
        if not self.is_stopping:
            self.is_stopping = True
            os.write(sys.stderr.fileno(), "Stopping …\n".encode())

    def _watch(self, supervisord: subprocess.Popen[bytes], is_new: bool) -> None:
        """Tells the progress until it is ready, then that of the sample traffic, until somebody stops it."""
        probe = Probe(
            self.env.url,
            connect(self.env.redis_url),
            self.env.engine_key,
            self.env.traffic_key,
            self.env.traffic_lock,
        )
        is_ready, said = False, ""
        while not self.is_stopping and supervisord.poll() is None:
            time.sleep(_POLL_SECONDS)
            if not is_ready and probe.is_ready():
                is_ready = True
                say(self.env.welcome(is_new))
            text = probe.traffic_progress() if is_ready else probe.engine_progress()
            if text and text != said:
                say(text)
                said = text


def lock(home: Path) -> IO[str]:
    """Keeps a second launcher away from the same home until the returned file is closed. Raises StartError."""
    (home / "run").mkdir(mode=0o700, parents=True, exist_ok=True)
    file = (home / "run" / "lock").open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise StartError(f"Tierscope is running already with {home}; stop it, or set TIERSCOPE_HOME.") from None
    return file


def finish_earlier(home: Path, seconds: float) -> None:
    """Waits for what a killed launcher left: two Valkeys on one socket would lose messages. Raises StartError."""
    if not earlier.finish(home / "run" / "supervisord.pid", config_path(home), seconds):
        raise StartError(f"An earlier run with {home} does not stop; end the process in {home}/run/supervisord.pid.")


def check_port(bind: str, port: int) -> None:
    """Raises StartError where the web process could not listen."""
    try:
        family, kind, proto, _, address = socket.getaddrinfo(bind, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, proto) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        raise StartError(
            f"Cannot listen on {bind}:{port}: {error.strerror}. Choose another: PORT=8001 make run"
        ) from None


def prepare(variables: dict[str, str]) -> None:
    """Migrates and makes the secrets. Raises StartError; the command itself has said why."""
    command = [sys.executable, "manage.py", "firstrun", "--verbosity", "0"]
    if subprocess.run(command, cwd=ROOT, env=variables, start_new_session=True, check=False).returncode:
        raise StartError("The database could not be prepared; the lines above say why.")


def start_supervisord(programs: list[Program], env: environment.Environment) -> subprocess.Popen[bytes]:
    """In a session of its own: the terminal's signals reach the launcher only, which stops things in order."""
    config = config_path(env.home)
    config.write_text(render(programs, env.home, ROOT))
    command = [sys.executable, "-m", "supervisor.supervisord", "--configuration", str(config)]
    return subprocess.Popen(
        command, cwd=ROOT, env=env.child_variables, start_new_session=True, preexec_fn=_die_with_parent
    )


def stop(supervisord: subprocess.Popen[bytes], seconds: float) -> int:
    """Ends supervisord, which ends its programs one after the other; returns its exit code."""
    if supervisord.poll() is None:
        supervisord.terminate()
    try:
        return supervisord.wait(seconds + 10)
    except subprocess.TimeoutExpired:
        supervisord.kill()
        return supervisord.wait()


def _die_with_parent() -> None:
    """Should the launcher be killed, Linux sends supervisord the signal that the launcher cannot send any more."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    os.chdir(ROOT)
    try:
        return Launcher(environment.read()).run()
    except (StartError, environment.EnvironmentVariableError) as error:
        say(str(error))
        return 1


if __name__ == "__main__":
    sys.exit(main())
