"""The real launcher, preparation and supervisord, with a Procfile that a test chooses."""

import os
import subprocess
import sys
from pathlib import Path

import psutil

from tests.e2e.stack import free_port, prepare

ROOT = Path(__file__).parents[2]
MAIN = "import sys; from pathlib import Path; from scripts.run import main; sys.exit(main(Path(sys.argv[1])))"


class Start:
    """A launcher with a home of its own and other programs than ours."""

    def __init__(self, home: Path, programs: str, *, shell: str = 'exec "$@"') -> None:
        self.home = home
        self.port = free_port()
        procfile = home / "Procfile"
        procfile.write_text(programs)
        prepare(home)
        kept = {name: value for name, value in os.environ.items() if name not in ("REDIS_URL", "DATABASE_URL")}
        environ = kept | {"TIERSCOPE_HOME": str(home), "PORT": str(self.port), "TIERSCOPE_SAMPLE_TRAFFIC": "0"}
        command = ["sh", "-c", shell, "sh", sys.executable, "-c", MAIN, str(procfile)]
        self.console = home / "console"
        with self.console.open("wb") as console:
            self.process = subprocess.Popen(command, cwd=ROOT, env=environ, stderr=console, start_new_session=True)

    def processes(self) -> list[psutil.Process]:
        """All that carries the home in its environment; a zombie has none."""
        return [each for each in psutil.process_iter() if self._is_ours(each)]

    def sleepers(self) -> list[psutil.Process]:
        """By their name first: who waits for them would else read every process's environment all the time."""
        return [each for each in psutil.process_iter() if self._is_called(each, "sleep") and self._is_ours(each)]

    def _is_called(self, process: psutil.Process, name: str) -> bool:
        try:
            return process.name() == name
        except psutil.Error:
            return False

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            return process.environ().get("TIERSCOPE_HOME") == str(self.home)
        except psutil.Error:
            return False
