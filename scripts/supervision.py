"""supervisord's configuration, made from the Procfile. Knows nothing about what the processes do."""

import os
import shlex
from dataclasses import dataclass
from pathlib import Path

from honcho.environ import parse_procfile

from scripts.run_folder import SUPERVISORD_PID

_LOG_BYTES = 10 * 1024 * 1024
_LOG_BACKUPS = 2
# Seconds a process may take to stop by itself: the engine finishes what it streams and writes its tiers down to disk.
_STOP_SECONDS = {"engine": 40, "worker": 20, "valkey": 20, "web": 10}
_DEFAULT_STOP_SECONDS = 10


@dataclass(frozen=True)
class Program:
    """One line of the Procfile. Programs start by ascending and stop, one after the other, by descending priority."""

    name: str
    command: str
    priority: int

    @property
    def stop_seconds(self) -> int:
        return _STOP_SECONDS.get(self.name, _DEFAULT_STOP_SECONDS)


def read_programs(procfile: Path, without: frozenset[str] = frozenset()) -> list[Program]:
    """The Procfile's processes in its order, which is the order of starting."""
    processes = parse_procfile(procfile.read_text()).processes
    return [
        Program(name, command, priority)
        for priority, (name, command) in enumerate(processes.items(), start=1)
        if name not in without
    ]


def stop_seconds(programs: list[Program]) -> int:
    """The longest that a clean stop of them all can take."""
    return sum(program.stop_seconds for program in programs)


def render(programs: list[Program]) -> str:
    """The text of supervisord.conf. It names no path, in which a # or ; would begin a comment: supervisord has to be
    started with our folder as its own, and with TIERSCOPE_HOME in its environment.
    """
    return "\n".join([_daemon(), *(_program(program) for program in programs)])


def _daemon() -> str:
    # Without `user` supervisord warns a root that it did not ask for another one.
    user = "user=root\n" if os.geteuid() == 0 else ""
    return f"""[supervisord]
nodaemon=true
silent=true
logfile=%(ENV_TIERSCOPE_HOME)s/logs/supervisord.log
logfile_maxbytes={_LOG_BYTES}
logfile_backups={_LOG_BACKUPS}
pidfile=%(ENV_TIERSCOPE_HOME)s/run/{SUPERVISORD_PID}
{user}"""


def _program(program: Program) -> str:
    # startretries: it waits a second longer after each try: these are hours, and nothing is given up overnight.
    # stdout_logfile: supervisord expands it twice, and the home may contain a % itself.
    return f"""[program:{program.name}]
command=python {shlex.join(lifeline(SUPERVISORD_PID))} {program.command.replace("%", "%%")}
priority={program.priority}
autorestart=true
startretries=200
stopsignal=TERM
stopwaitsecs={program.stop_seconds}
killasgroup=true
redirect_stderr=true
stdout_logfile=%%(ENV_TIERSCOPE_HOME)s/logs/{program.name}.log
stdout_logfile_maxbytes={_LOG_BYTES}
stdout_logfile_backups={_LOG_BACKUPS}
"""


def lifeline(parent: str) -> list[str]:
    """Python's arguments before a command, so that it ends with its `parent` and is known to be there until then."""
    return ["-m", "scripts.lifeline", parent]


def log_path(home: Path, name: str) -> Path:
    return home / "logs" / f"{name}.log"
