"""What each process of the Procfile is, with the validated settings. Knows nothing about who supervises it."""

import os
import sys
import warnings
from typing import Never

from django.conf import settings

from dashboard.embedded_valkey import make_folders, server_command
from dashboard.valkey import engine_queue

NAMES = ("valkey", "web", "engine", "worker")
# A generate task waits for its request: the engine queues and batches them, a thread only holds one.
_ENGINE_THREADS = 128
_WORKER_THREADS = 4
# Celery warns every root; messages are JSON, and in a container root is nobody special.
_ROOT_IS_MEANT = "You're running the worker with superuser privileges"


def become(name: str) -> Never:
    """Ends with the process. Valkey replaces this program; the others go on in it, with Django set up already: starting
    Python and importing Django again would be 1.6 s of a core for each of three. Raises ValueError for another name.
    """
    match name:
        case "valkey":
            folder = settings.TIERSCOPE_HOME / "valkey"
            make_folders(settings.VALKEY_SOCKET, folder)
            argv = server_command(settings.VALKEY_SOCKET, folder)
            os.execv(argv[0], argv)
        case "web":
            from dashboard.web_server import main

            sys.exit(main())
        case "engine":
            queue = engine_queue(settings.ENGINE_NAME)
            _celery(_worker_arguments(queue, f"engine-{settings.ENGINE_NAME}", _ENGINE_THREADS))
        case "worker":
            _celery(_worker_arguments("default", "worker", _WORKER_THREADS))
    raise ValueError(f"“{name}” is not a process; choose one of {', '.join(NAMES)}.")


def _worker_arguments(queue: str, name: str, num_threads: int) -> list[str]:
    """Without checks: `firstrun` made them, and a worker would import every page for that of their addresses, 0.25 s of
    a core.
    """
    return [
        *("--quiet", "--skip-checks", "--app", "dashboard", "worker"),
        *("--pool", "threads", "--concurrency", str(num_threads)),
        *("--queues", queue, "--hostname", f"{name}@%h"),
        *("--loglevel", "INFO", "--without-gossip", "--without-mingle"),
    ]


def _celery(arguments: list[str]) -> Never:
    from celery import __main__ as celery

    warnings.filterwarnings("ignore", message=_ROOT_IS_MEANT)
    sys.argv = [celery.__file__, *arguments]  # as `python -m celery` has it
    celery.main()
    sys.exit()
