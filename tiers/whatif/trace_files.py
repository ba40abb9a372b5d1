"""Traces from files: one JSON object a line, plain or gzipped. Every fault is told with its line; nothing is guessed.

Two forms. Mooncake's (FAST'25): `input_length` tokens in blocks of 512 with `hash_ids`, the last one perhaps in part.
A plain one: `block_ids` (numbers or texts), all full, and optionally `tokens`, a count for each block.
"""

import gzip
import json
from collections.abc import Hashable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import IO, Any, cast

from tiers.whatif.accesses import Accesses, collect

MOONCAKE_BLOCK_TOKENS = 512
# A prompt of a million tokens in blocks of 16 has a line of about this length.
MAX_LINE_BYTES = 8 << 20
MAX_ACCESSES = 200_000_000
_GZIP_MAGIC = b"\x1f\x8b"

Request = tuple[Sequence[Hashable], Sequence[int]]


class TraceError(ValueError):
    """The file is not a trace; the message says which line is wrong and what was expected."""


def read_trace(path: Path) -> Accesses:
    """Raises TraceError, or OSError where the file cannot be read."""
    accesses = collect(_requests(path))
    if not accesses.num_requests:
        raise TraceError(f"{path} has no requests; expected one JSON object a line.")
    return accesses


def _requests(path: Path) -> Iterator[Request]:
    num_accesses = 0
    with path.open("rb") as file:
        is_gzip = file.read(2) == _GZIP_MAGIC
        file.seek(0)
        opened = cast(IO[bytes], gzip.GzipFile(fileobj=file)) if is_gzip else file
        for number, line in _lines(path, opened):
            if not line.strip():
                continue
            names, tokens = _request(f"{path}, line {number:,}", line)
            num_accesses += len(names)
            if num_accesses > MAX_ACCESSES:
                raise TraceError(f"{path}, line {number:,}: more than {MAX_ACCESSES:,} block accesses; cut the trace.")
            yield names, tokens


def _lines(path: Path, file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    for number in count(1):
        try:
            line = file.readline(MAX_LINE_BYTES + 1)
        except (EOFError, gzip.BadGzipFile, OSError) as error:
            raise TraceError(f"{path}, line {number:,}: the compressed file is torn ({error}).") from None
        if not line:
            return
        if len(line) > MAX_LINE_BYTES:
            raise TraceError(f"{path}, line {number:,}: longer than {MAX_LINE_BYTES:,} bytes.")
        yield number, line


def _request(where: str, line: bytes) -> Request:
    try:
        told = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise TraceError(f"{where}: not JSON ({error}).") from None
    if not isinstance(told, dict):
        raise TraceError(f"{where}: expected a JSON object, got {type(told).__name__}.")
    if "hash_ids" in told:
        return _mooncake(where, told)
    if "block_ids" in told:
        return _plain(where, told)
    raise TraceError(f"{where}: neither “hash_ids” (Mooncake's form) nor “block_ids” is there.")


def _mooncake(where: str, told: dict[str, Any]) -> Request:
    names = _names(where, told, "hash_ids")
    length = told.get("input_length")
    if not isinstance(length, int) or not _is_count(length) or -(-length // MOONCAKE_BLOCK_TOKENS) != len(names):
        raise TraceError(
            f"{where}: “input_length” is {length!r:.40} with {len(names):,} “hash_ids”; expected one id for each "
            f"{MOONCAKE_BLOCK_TOKENS} tokens."
        )
    tokens = [MOONCAKE_BLOCK_TOKENS] * len(names)
    if names:
        tokens[-1] = length - MOONCAKE_BLOCK_TOKENS * (len(names) - 1)
    return names, tokens


def _plain(where: str, told: dict[str, Any]) -> Request:
    names = _names(where, told, "block_ids")
    tokens = told.get("tokens", [1] * len(names))
    if not isinstance(tokens, list) or len(tokens) != len(names) or not all(map(_is_count, tokens)):
        raise TraceError(f"{where}: “tokens” has to be a list with a count for each of the {len(names):,} blocks.")
    return names, tokens


def _names(where: str, told: dict[str, Any], field: str) -> list[Hashable]:
    names = told[field]
    if not isinstance(names, list) or not all(isinstance(n, int | str) and not isinstance(n, bool) for n in names):
        raise TraceError(f"{where}: “{field}” has to be a list of numbers or texts.")
    return names


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 40
