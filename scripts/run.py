"""The program behind `make run`. Every reason not to start is one sentence and exit code 1.

The heavy imports come late: a Ctrl-C that meets them ends the program without a traceback.
"""

import os
import signal
import sys
from pathlib import Path

from scripts import ROOT, console

# Whatever is made from here on, logs and databases, is for its owner only, also in a home that others can read.
_PRIVATE = 0o077


def main(procfile: Path = ROOT / "Procfile") -> int:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # nothing has been started yet
    console.fill_standard_descriptors()
    os.umask(_PRIVATE)
    os.chdir(ROOT)
    from scripts import environment
    from scripts.launcher import Launcher, StartError

    try:
        return Launcher(environment.read(), procfile).run()
    except (StartError, environment.EnvironmentVariableError) as error:
        if str(error):
            console.say(str(error))
        return 1
    finally:
        console.ignore_signals()


if __name__ == "__main__":
    sys.exit(main())
