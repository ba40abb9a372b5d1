"""Static files under hashed names, cached for ever: also the modules that our scripts import from each other."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.contrib.staticfiles.storage import HashedFilesMixin
from django.core.management import call_command
from whitenoise.storage import CompressedManifestStaticFilesStorage

_STAMP = "collected.txt"


class HashedStaticFilesStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # it has no types
    """Rewrites `import … from "./x.js"` too, in our own scripts; Django leaves that off unless it is asked for.

    In js/ only: looking for imports in plotly.js's one line of 1.4 MB takes a second.
    """

    support_js_module_import_aggregation = True
    _imports: Any = HashedFilesMixin._js_module_import_aggregation_patterns  # type: ignore[attr-defined] # not in the stubs
    _js_module_import_aggregation_patterns = ("js/*.js", _imports[1])


def collect() -> None:
    """`collectstatic`, where a file or what names them is not as it was the last time: two seconds of every start."""
    stamp = Path(settings.STATIC_ROOT) / _STAMP
    digest = hashlib.sha256("\n".join(_sources()).encode()).hexdigest()
    if stamp.is_file() and stamp.read_text() == digest:
        return
    call_command("collectstatic", interactive=False, verbosity=0)
    stamp.write_text(digest)


def _sources() -> Iterator[str]:
    """Every file with its size and time, and this module, which decides what they are called."""
    for finder in get_finders():
        for name, storage in finder.list([]):
            yield _line(name, Path(storage.path(name)))
    yield _line("", Path(__file__))


def _line(name: str, path: Path) -> str:
    found = path.stat()
    return f"{name} {path} {found.st_size} {found.st_mtime_ns}"
