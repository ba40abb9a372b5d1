"""A SQLite file as `migrate` leaves an empty one, made once and copied. Knows nothing about what is stored in it.

Applying every migration takes 2.5 s of a core, and each process that runs tests and each stack needs such a file; where
the copy is there, `migrate` finds nothing to do. The file is kept between sessions, under a name that stands for all
migrations: another one, or another version of Django, is another file.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from tests.model_cache import MODEL_CACHE

ROOT = Path(__file__).parents[2]
_PACKAGES = ("django", "django-axes")


def copy_migrated(to: Path) -> None:
    """Where something lies at `to`, it is left alone."""
    if to.exists():
        return
    MODEL_CACHE.mkdir(mode=0o700, exist_ok=True)
    made = MODEL_CACHE / f"migrated-{_digest()}.sqlite3"
    with (MODEL_CACHE / "migrated.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            _forget_others()
            _migrate(made)
        shutil.copyfile(made, to)


def _digest() -> str:
    """Of the migrations' own text and of the packages that bring some."""
    digest = hashlib.sha256()
    for file in sorted((ROOT / "dashboard" / "migrations").glob("*.py")):
        digest.update(file.name.encode() + file.read_bytes())
    for package in _PACKAGES:
        digest.update(version(package).encode())
    return digest.hexdigest()[:16]


def _forget_others() -> None:
    """Another checkout's is made anew when it asks; without that they would become many."""
    for file in MODEL_CACHE.glob("migrated-*.sqlite3"):
        file.unlink()


def _migrate(to: Path) -> None:
    home = MODEL_CACHE / "migrating"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(mode=0o700)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TIERSCOPE_")}
    env = kept | {"TIERSCOPE_HOME": str(home), "DATABASE_URL": f"sqlite:///{home / 'made.sqlite3'}"}
    subprocess.run([sys.executable, "manage.py", "migrate", "-v", "0"], cwd=ROOT, env=env, check=True, timeout=120)
    os.replace(home / "made.sqlite3", to)
    shutil.rmtree(home)
