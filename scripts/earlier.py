"""What an earlier launcher left behind when it was killed: its supervisord may still be stopping the processes."""

from pathlib import Path

import psutil


def find_supervisord(pid_file: Path, config: Path) -> psutil.Process | None:
    """The supervisord that runs with this `config`; None where nothing or another has its number."""
    try:
        process = psutil.Process(int(pid_file.read_text()))
        return process if str(config) in process.cmdline() else None
    except (OSError, ValueError, psutil.Error):
        return None


def finish(pid_file: Path, config: Path, seconds: float) -> bool:
    """Stops it in its own order; True once nothing is left."""
    process = find_supervisord(pid_file, config)
    if process is None:
        return True
    process.terminate()
    try:
        process.wait(seconds)
    except psutil.TimeoutExpired:
        return False
    return True
