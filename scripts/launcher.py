"""Prepares, starts supervisord, says when it is ready, stops everything on a signal.

Knows nothing about the processes but the Procfile. It is the one process that a terminal's Ctrl-C reaches.
"""

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

from scripts import ROOT, earlier, environment
from scripts.console import STOP_SIGNALS, held_signals, say, say_in_handler
from scripts.follow import Follower
from scripts.readiness import Probe, connect
from scripts.run_folder import LAUNCHER_PID, RunFolder
from scripts.supervision import lifeline, log_path, read_programs, render, stop_seconds

_POLL_SECONDS = 0.5


class StartError(Exception):
    """Why it cannot start, in one sentence for the person in front of the terminal; "" where it was told already."""


class Launcher:
    """One run, from the first check to the last process gone."""

    def __init__(self, env: environment.Environment, procfile: Path) -> None:
        self.env = env
        self.programs = read_programs(procfile, without=env.outside_processes)
        self.folder = RunFolder.of(env.home)
        self.is_stopping = False

    def run(self) -> int:
        """Returns the exit code: 0 after a stop that was asked for. Raises StartError."""
        for number in STOP_SIGNALS:
            if (number, signal.getsignal(number)) != (signal.SIGHUP, signal.SIG_IGN):  # as nohup wants it
                signal.signal(number, self._on_signal)
        is_new = not self.env.password_file.exists()
        with self._lock(), Follower({each.name: log_path(self.env.home, each.name) for each in self.programs}):
            self._finish_earlier()
            check_port(self.env.bind, self.env.port)
            if not self.is_stopping:
                self._prepare()
            return self._supervise(is_new)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if not self.is_stopping:
            self.is_stopping = True
            say_in_handler("Stopping …")

    def _lock(self) -> IO[str]:
        """Writes what is needed under the home, and keeps a second launcher away from it. Raises StartError."""
        try:
            for name in ("logs", "run"):
                (self.env.home / name).mkdir(mode=0o700, parents=True, exist_ok=True)
            file = lock(self.folder)
            self.folder.config.write_text(render(self.programs))
            self.folder.alive.touch(mode=0o600)
        except OSError as error:
            raise StartError(f"TIERSCOPE_HOME ({self.env.home}) cannot be used: {error.strerror}.") from None
        return file

    def _finish_earlier(self) -> None:
        """Waits for what a killed launcher left: two Valkeys on one socket would lose messages. Raises StartError."""
        left = earlier.finish(self.folder, stop_seconds(self.programs), lambda: self.is_stopping)
        if left and not self.is_stopping:
            raise StartError(f"An earlier run with {self.env.home} does not stop; end its processes: {numbers(left)}.")

    def _prepare(self) -> None:
        """Migrates and makes the secrets. Raises StartError; the command itself has said why."""
        code = self._python("manage.py", "firstrun", "--verbosity", "0").wait()
        if code:
            raise StartError(f"The database was not prepared: signal {-code} ended that." if code < 0 else "")

    def _supervise(self, is_new: bool) -> int:
        if self.is_stopping:
            say("Stopped.")
            return 0
        supervisord = self._python("-m", "supervisor.supervisord", "-c", str(self.folder.config))
        try:
            self._watch(supervisord, is_new)
        finally:
            stop(supervisord, stop_seconds(self.programs))
            left = earlier.finish(self.folder, stop_seconds(self.programs))
        if left:
            say(f"These processes do not end: {numbers(left)}.")
            return 1
        say("Stopped." if self.is_stopping else f"supervisord ended by itself: {self.env.home}/logs says why.")
        return int(not self.is_stopping)

    def _python(self, *arguments: str) -> subprocess.Popen[bytes]:
        """In a session of its own: the terminal's signals reach the launcher only, which stops things in order."""
        command = [sys.executable, *lifeline(LAUNCHER_PID), sys.executable, *arguments]
        return subprocess.Popen(command, cwd=ROOT, env=self.env.child_variables, start_new_session=True)

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
                self._say_if_running(self.env.welcome(is_new))
            text = probe.traffic_progress() if is_ready else probe.engine_progress()
            if text and text != said:
                self._say_if_running(text)
                said = text

    def _say_if_running(self, text: str) -> None:
        """Nothing is ready after “Stopping …”."""
        with held_signals():
            if not self.is_stopping:
                say(text)


def lock(folder: RunFolder) -> IO[str]:
    """Until the returned file is closed no other launcher gets it. Raises StartError, OSError."""
    file = folder.lock.open("a+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pid = folder.lock.read_text()
        home = folder.path.parent
        raise StartError(
            f"Tierscope is running already with {home} (process {pid}); stop it, or set TIERSCOPE_HOME."
        ) from None
    file.truncate(0)
    print(os.getpid(), end="", file=file, flush=True)
    return file


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


def stop(supervisord: subprocess.Popen[bytes], seconds: float) -> None:
    """Ends supervisord, which ends its programs one after the other."""
    if supervisord.poll() is None:
        supervisord.terminate()
    try:
        supervisord.wait(seconds + 10)
    except subprocess.TimeoutExpired:
        supervisord.kill()
        supervisord.wait()


def numbers(pids: list[int]) -> str:
    return ", ".join(map(str, pids))
