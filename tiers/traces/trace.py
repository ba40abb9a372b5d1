"""A trace to read: its form is told from its first lines, its requests come one after the other, in bounded memory.

Knows nothing about what requests are read for.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from types import TracebackType

from tiers.traces.faults import Faults, RefuseFaults
from tiers.traces.fields import UNIX_FROM, WrongValueError, seconds
from tiers.traces.files import Line, is_archive, open_lines, paths_of
from tiers.traces.forms import Form, Read, detect, form_of
from tiers.traces.in_order import merged, sorted_rows
from tiers.traces.limits import Meter, TraceLimits
from tiers.traces.request import LoadTokenizer, TraceError, TraceRequest
from tiers.traces.rows import Row

AUTO = "auto"
_LOOKED_AT = 20


class Trace:
    """Requests, to be gone through once. `starts_at` is the first one's Unix time, None where the trace tells none."""

    def __init__(self, form: Form, rows: Iterator[Row], read: Read, faults: Faults, meter: Meter) -> None:
        self._rows = rows
        self._read = read
        self._faults = faults
        self._meter = meter
        self.kind = form.kind
        first = next(rows, None)
        self.has_times = first is not None and first.at is not None
        self._first_at = first.at or 0.0 if first is not None else 0.0
        self.starts_at = self._first_at if self._first_at >= UNIX_FROM else None
        self._requests = self._all(first)

    def __iter__(self) -> Iterator[TraceRequest]:
        return self._requests

    def __enter__(self) -> "Trace":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Closes its files; also happens at the end, and when nobody holds it any more."""
        self._requests.close()

    @property
    def share_read(self) -> float:
        """0 to 1. A trace that has to be sorted first is read to its end when it is opened, and then counts anew."""
        return self._meter.share_read

    def _all(self, first: Row | None) -> Generator[TraceRequest, None, None]:
        for row in chain([first] if first is not None else [], self._rows):
            try:
                request = self._read(row.told, (row.at or 0.0) - self._first_at)
            except WrongValueError as error:
                self._faults.tell(TraceError(f"{row.where}: {error}"))
                continue
            self._meter.request(row.where, len(request.block_ids) + len(request.output_block_ids))
            yield request


def open_trace(
    path: Path,
    *,
    kind: str = AUTO,
    load_tokenizer: LoadTokenizer | None = None,
    block_tokens: int = 16,
    faults: Faults | None = None,
    limits: TraceLimits | None = None,
    scratch: Path | None = None,
    while_opening: Callable[[], object] = lambda: None,
) -> Trace:
    """`path` is a file, a folder or a pattern. `load_tokenizer` and `block_tokens` are for traces with text, `scratch`
    is the folder for what has to be sorted first. Of several files one that is no part of the trace is a fault.

    `while_opening` is called now and then until the first request is there, which takes minutes where many lines have
    to be sorted; what it raises ends that. Wrong lines end the reading, where `faults` are not given. Raises
    TraceError, or OSError where nothing can be read.
    """
    limits, faults = limits or TraceLimits(), faults or RefuseFaults()
    first_lines = _first_lines_of_files(paths_of(path), limits, faults)
    begins = [lines for lines in first_lines.values() if lines]
    if not begins:
        raise TraceError(f"{path} has no requests; expected one JSON object a line, or CSV.")
    try:
        form = _detected(begins) if kind == AUTO else form_of(kind)
        read = form.reader(load_tokenizer, block_tokens)
    except TraceError:
        raise
    except ValueError as error:
        raise TraceError(f"{path}: {error}") from None
    if len(first_lines) > 1:
        first_lines = _without_foreign(first_lines, form, faults)
    meter = Meter(limits, sum(each.stat().st_size for each in first_lines), while_opening)
    has_times = _has_times(next(filter(None, first_lines.values()), []), form)
    trace = Trace(form, _rows(list(first_lines), form, has_times, faults, meter, scratch), read, faults, meter)
    meter.on_read = lambda: None
    return trace


_FirstLines = dict[Path, list[Line]]


def _first_lines_of_files(paths: list[Path], limits: TraceLimits, faults: Faults) -> _FirstLines:
    """Of several files one that cannot be opened is a fault and left out."""
    found: _FirstLines = {}
    for path in paths:
        try:
            found[path] = _first_lines(path, limits)
        except TraceError as error:
            if len(paths) == 1:
                raise
            faults.tell(error)
    return found


def _first_lines(path: Path, limits: TraceLimits) -> list[Line]:
    """Of an archive's first file that has any."""
    for lines in open_lines(path, Meter(limits, 0)):
        if found := list(islice(lines, _LOOKED_AT)):
            return found
    return []


def _detected(begins: list[list[Line]]) -> Form:
    """The form of the first file that has one. Raises TraceError about the first."""
    for lines in begins:
        with suppress(TraceError):
            return detect(lines)
    return detect(begins[0])


def _without_foreign(first_lines: _FirstLines, form: Form, faults: Faults) -> _FirstLines:
    """Somebody's notes beside a trace's files are told once, by their name, not line by line."""
    own: _FirstLines = {}
    for path, lines in first_lines.items():
        if lines and not any(form.fits(line.text) for line in lines):
            fields = "”, “".join(sorted(form.told_by))
            told = f"is no part of this trace: none of its first lines has “{fields}” ({form.title})"
            faults.tell(TraceError(f"{path} {told}."))
        else:
            own[path] = lines
    return own


def _has_times(first_lines: list[Line], form: Form) -> bool:
    """Whether the first line that can be read tells one: then all have to."""
    first = next(form.rows(iter(first_lines), _Ignore()), None)
    return first is not None and first.told.get(form.time_field) is not None


class _Ignore:
    """Lines are only looked at; they are read again."""

    def tell(self, error: TraceError) -> None:
        pass


def _rows(
    paths: list[Path], form: Form, has_times: bool, faults: Faults, meter: Meter, scratch: Path | None
) -> Iterator[Row]:
    files = [_rows_of_file(path, form, has_times, faults, meter) for path in paths]
    if not has_times:
        return chain.from_iterable(files)
    if not form.is_in_order or any(is_archive(path, meter) for path in paths):
        return sorted_rows(chain.from_iterable(files), meter, scratch)
    return merged(files) if len(files) > 1 else files[0]


def _rows_of_file(path: Path, form: Form, has_times: bool, faults: Faults, meter: Meter) -> Iterator[Row]:
    for lines in open_lines(path, meter):
        rows = form.rows(lines, faults)
        yield from _timed(rows, form, faults) if has_times else rows


def _timed(rows: Iterator[Row], form: Form, faults: Faults) -> Iterator[Row]:
    for row in rows:
        try:
            yield Row(row.where, row.told, seconds(row.told, form.time_field, form.per_second))
        except WrongValueError as error:
            faults.tell(TraceError(f"{row.where}: {error}"))
