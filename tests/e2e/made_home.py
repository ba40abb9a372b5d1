"""What a first start makes of an empty home, made once and copied. Knows nothing about what is stored in it.

Applying every migration takes 2.5 s of a core and hashing the administrator's password 0.4 s; each process that runs
tests needs the first, each stack both. Where the copy is there, `firstrun` finds nothing to do. It is kept between test
runs, under a name that stands for all migrations: another one, or another version of Django, is another folder.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from tests.model_cache import MODEL_CACHE

ROOT = Path(__file__).parents[2]
_PACKAGES = ("django", "django-axes")
_DATABASE = "tierscope.sqlite3"
_SECRETS = ("admin-password", "api-key", "secret-key")


def copy_migrated(to: Path) -> None:
    """A SQLite file as `migrate` leaves an empty one. Where something lies at `to`, it is left alone."""
    if not to.exists():
        with _made("migrate") as made:
            shutil.copyfile(made / _DATABASE, to)


def copy_first_run(home: Path) -> None:
    """A database with an administrator and a key, and their files. A home with a database is left alone."""
    if not (home / _DATABASE).exists():
        with _made("firstrun") as made:
            for name in (*_SECRETS, _DATABASE):
                shutil.copy(made / name, home / name)


@contextmanager
def _made(command: str) -> Iterator[Path]:
    """The home in which manage.py ran this command; nobody forgets it meanwhile."""
    made = MODEL_CACHE / f"home-{_digest()}-{command}"
    MODEL_CACHE.mkdir(mode=0o700, exist_ok=True)
    with (MODEL_CACHE / "home.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            _forget_others()
            _make(made, command)
        yield made


def _digest() -> str:
    """Of the migrations' own text and of the packages that bring some."""
    digest = hashlib.sha256()
    for file in sorted((ROOT / "dashboard" / "migrations").glob("*.py")):
        digest.update(file.name.encode() + file.read_bytes())
    for package in _PACKAGES:
        digest.update(version(package).encode())
    return digest.hexdigest()[:16]


def _forget_others() -> None:
    """Another checkout's are made anew when it asks; without that they would become many."""
    for folder in MODEL_CACHE.glob("home-*-*"):
        if _digest() not in folder.name:
            shutil.rmtree(folder)


def _make(to: Path, command: str) -> None:
    home = MODEL_CACHE / "making"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(mode=0o700)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TIERSCOPE_", "REDIS_"))}
    env = kept | {"TIERSCOPE_HOME": str(home), "DATABASE_URL": f"sqlite:///{home / _DATABASE}"}
    subprocess.run([sys.executable, "manage.py", command, "-v", "0"], cwd=ROOT, env=env, check=True, timeout=120)
    os.replace(home, to)
