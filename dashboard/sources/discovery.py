"""Reads lists of targets in Prometheus' own formats: file_sd (JSON or YAML) and http_sd (JSON). Stores nothing.

https://prometheus.io/docs/prometheus/latest/configuration/configuration/ (file_sd_config, http_sd_config): groups,
`{"targets": ["host:port"], "labels": {…}}`. Of the labels those count that say where the metrics are.
"""

import hashlib
import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from errno import EINVAL
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import yaml

from dashboard.sources.address import address_problem

MAX_TARGETS = 2_000
MAX_FILE_BYTES = 4 * 1024 * 1024
MAX_FILES = 100
MAX_EVENTS = 400_000  # of a YAML text; 2,000 targets with ten labels each are 100,000
MAX_DEPTH = 10  # a list of groups has 3
MAX_URL = 200
_NAME_LENGTH = 64
_SUFFIXES = (".json", ".yml", ".yaml")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?")
_PARAM = "__param_"


class DiscoveryError(ValueError):
    """The list as a whole cannot be used; the message is one sentence and repeats nothing of what was read."""


@dataclass(frozen=True, order=True)
class Found:
    """One target: where its metrics are, and what it is called (`instance`, else its address).

    With a `selector` that is a Prometheus, and these of its series are the target's.
    """

    url: str
    name: str
    selector: str = ""

    @property
    def place(self) -> tuple[str, str]:
        return self.url, self.selector


def read_files(pattern: str) -> str:
    """The targets of every file that fits, as one JSON text. The last part of the path may have a *."""
    path = Path(pattern)
    files = _files(path)
    if not files or len(files) > MAX_FILES:
        many = len(files) if len(files) <= MAX_FILES else f"More than {MAX_FILES}"
        raise DiscoveryError(f"{many} files are called so; expected 1 to {MAX_FILES}.")
    groups: list[Any] = []
    for file in files:
        groups += _groups(_file(file), "json" if file.suffix == ".json" else "yaml", _name(file))
    return json.dumps(groups)


def _files(path: Path) -> list[Path]:
    """At most one more than are read."""
    if "*" not in path.name:
        return [path]
    try:
        return sorted(islice(path.parent.glob(path.name), MAX_FILES + 1))
    except (OSError, ValueError):
        raise DiscoveryError(f"{_name(path)} is no pattern of files; expected one like *.json.") from None


def _name(file: Path) -> str:
    """For a person: a file's name may be bytes that are no text."""
    return file.name.encode(errors="replace").decode()


def check_path(pattern: str) -> None:
    """Raises DiscoveryError unless it is an absolute path of lists of targets, as Prometheus has them."""
    path = Path(pattern)
    if not path.is_absolute() or path.suffix not in _SUFFIXES or "*" in str(path.parent):
        raise DiscoveryError("Enter an absolute path that ends in .json, .yml or .yaml, like /etc/targets/*.json.")


def found(text: str, *, is_json: bool = True) -> list[Found]:
    """Every target once, by address. Raises DiscoveryError; one bad target spoils the list, so that nothing goes by
    mistake."""
    by_url: dict[str, Found] = {}
    for number, group in enumerate(_groups(text, "json" if is_json else "yaml", "The list"), start=1):
        for target in _targets(group, number):
            by_url.setdefault(target.url, target)
            if len(by_url) > MAX_TARGETS:
                raise DiscoveryError(f"The list has more than {MAX_TARGETS:,} targets, the most that are watched.")
    return sorted(by_url.values())


def source_name(prefix: str, target: Found, taken: Set[str]) -> str:
    """A name for pages: "fleet-10.0.0.7-8000"; with a short hash of its address where it is too long or taken."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{prefix}-{target.name}").strip("-")
    if len(plain) <= _NAME_LENGTH and plain not in taken:
        return plain
    digest = hashlib.sha256((target.url + target.selector).encode()).hexdigest()[:8]
    return f"{plain[: _NAME_LENGTH - 9]}-{digest}"


def _file(file: Path) -> str:
    try:
        with open(file, "rb", opener=_regular) as opened:
            data = opened.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise DiscoveryError(f"{_name(file)} cannot be read ({error.strerror}).") from None
    except ValueError:
        raise DiscoveryError(f"{_name(file)!r} is no name of a file.") from None
    if len(data) > MAX_FILE_BYTES:
        raise DiscoveryError(f"{_name(file)} has more than {MAX_FILE_BYTES // 2**20} MiB, the most that is read.")
    return data.decode("utf-8", errors="replace")


def _regular(path: str, flags: int) -> int:
    """A descriptor of a regular file; of a pipe that nobody writes into, `open` would wait for who does."""
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(EINVAL, "no regular file")
    return descriptor


def _yaml(text: str) -> Any:
    """Lists, dictionaries and texts: a date, a set or a number in YAML's sense is the text that stands there.

    What is small and becomes large (aliases), or is deep, is refused before anything is made of it.
    """
    depth = 0
    for number, event in enumerate(yaml.parse(text, Loader=yaml.CBaseLoader)):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if isinstance(event, yaml.AliasEvent):
            raise DiscoveryError("An alias (*name) is not read; write out what it stands for.")
        if depth > MAX_DEPTH or number > MAX_EVENTS:
            raise DiscoveryError("The list is deeper or longer than any list of targets.")
    return yaml.load(text, Loader=yaml.CBaseLoader)  # noqa: S506  makes texts, lists and dictionaries only


_LOADERS: Mapping[str, Callable[[str], Any]] = {"json": json.loads, "yaml": _yaml}


def _groups(text: str, form: str, name: str) -> list[Any]:
    try:
        told = _LOADERS[form](text)
    except DiscoveryError as error:
        raise DiscoveryError(f"{name}: {error}") from None
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        raise DiscoveryError(f"{name} is no {form.upper()}{_line(error)}.") from None
    if told is None and form == "yaml":
        return []
    if not isinstance(told, list):
        raise DiscoveryError(f'{name} is no list of groups; expected [{{"targets": ["host:port"], "labels": {{}}}}].')
    return told


def _line(error: Exception) -> str:
    """Where a person has to look, as far as that is known."""
    mark = getattr(error, "problem_mark", None)  # of YAML; JSON's has `lineno`
    number = mark.line + 1 if mark is not None else getattr(error, "lineno", None)
    return "" if number is None else f": see its line {number:,}"


def _targets(group: Any, number: int) -> Iterator[Found]:
    labels = group.get("labels") or {} if isinstance(group, dict) else None
    targets = group.get("targets") if isinstance(group, dict) else None
    if not isinstance(targets, list) or not isinstance(labels, dict):
        raise DiscoveryError(f'Group {number} is none; expected {{"targets": ["host:port"], "labels": {{}}}}.')
    for target in targets:
        if not isinstance(target, str) or not _HOST.fullmatch(target):
            raise DiscoveryError(f"Group {number} has a target that is no host:port.")
        yield _found(target, {str(name): str(value) for name, value in labels.items()}, number)


def _found(address: str, labels: Mapping[str, str], number: int) -> Found:
    scheme, path = labels.get("__scheme__", "http"), labels.get("__metrics_path__", "/metrics")
    if scheme not in ("http", "https") or not path.startswith("/"):
        raise DiscoveryError(f"Group {number}: __scheme__ is http or https, and __metrics_path__ starts with a slash.")
    try:
        asked = _asked(labels)
    except UnicodeError:
        raise DiscoveryError(f"Group {number}: a {_PARAM} label is no text.") from None
    url = f"{scheme}://{address}{path}" + (f"?{asked}" if asked else "")
    if len(url) > MAX_URL:
        raise DiscoveryError(f"Group {number}: an address has more than {MAX_URL} characters.")
    if problem := address_problem(url):
        raise DiscoveryError(f"Group {number}: {problem}")
    return Found(url, labels.get("instance") or address)


def _asked(labels: Mapping[str, str]) -> str:
    return urlencode({name.removeprefix(_PARAM): value for name, value in labels.items() if name.startswith(_PARAM)})
