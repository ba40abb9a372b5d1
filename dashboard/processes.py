"""What each process of the Procfile runs, with the validated settings. Knows nothing about who supervises it."""

import sys

from django.conf import settings

from dashboard.embedded_valkey import server_command

NAMES = ("valkey", "web", "engine", "worker")
# A generate task waits for its request: the engine queues and batches them, a thread only holds one.
_ENGINE_THREADS = 128
_WORKER_THREADS = 4
# Celery warns every root; messages are JSON, and in a container root is nobody special.
_ROOT_IS_MEANT = "ignore:You're running the worker with superuser privileges"


def command(name: str) -> list[str]:
    """The program and its arguments. Raises ValueError for a name that is not in the Procfile."""
    match name:
        case "valkey":
            return server_command(settings.VALKEY_SOCKET, settings.TIERSCOPE_HOME / "valkey")
        case "web":
            return [sys.executable, "-m", "dashboard.web_server"]
        case "engine":
            queue = f"engine.{settings.ENGINE_NAME}"
            return _celery_worker(queue, f"engine-{settings.ENGINE_NAME}", _ENGINE_THREADS)
        case "worker":
            return _celery_worker("default", "worker", _WORKER_THREADS)
    raise ValueError(f"“{name}” is not a process; choose one of {', '.join(NAMES)}.")


def _celery_worker(queue: str, name: str, num_threads: int) -> list[str]:
    return [
        *(sys.executable, "-W", _ROOT_IS_MEANT, "-m", "celery", "--quiet", "--app", "dashboard", "worker"),
        *("--pool", "threads", "--concurrency", str(num_threads)),
        *("--queues", queue, "--hostname", f"{name}@%h"),
        *("--loglevel", "INFO", "--without-gossip", "--without-mingle"),
    ]
