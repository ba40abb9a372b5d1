"""Lines to objects, JSON or CSV. A line that is neither is a fault; nothing is read across lines.

Knows nothing about what the fields mean.
"""

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tiers.traces.faults import Faults
from tiers.traces.fields import WrongValueError
from tiers.traces.files import Line
from tiers.traces.request import TraceError

_NUMBERS = ("time", "prompt_tokens", "output_tokens")
_BLOCKS = "block_ids"
_LISTS = (_BLOCKS, "output_block_ids")
# 131,072 letters by default; a prompt's list of blocks may fill a line, whose length is bounded. Once, for it is the
# whole process': set line by line it failed whoever read a longer one at that moment.
csv.field_size_limit(2**31 - 1)


@dataclass(frozen=True, slots=True)
class Row:
    """What a line says, and where it is; `at` are its seconds, None where the trace tells no times."""

    where: str
    told: dict[str, Any]
    at: float | None = None


def json_rows(lines: Iterator[Line], faults: Faults) -> Iterator[Row]:
    for line in lines:
        try:
            yield Row(line.where, json_object(line.text))
        except WrongValueError as error:
            faults.tell(TraceError(f"{line.where}: {error}"))


def json_object(text: bytes) -> dict[str, Any]:
    try:
        told = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise WrongValueError(f"not JSON ({error}).") from None
    if not isinstance(told, dict):
        raise WrongValueError(f"expected a JSON object, got {type(told).__name__}.")
    if b"\\ud" in text.lower() or b"\xed" in text:  # the latter begins one in bytes, and Korean letters
        _refuse_half_characters(told)
    return told


def _refuse_half_characters(told: dict[str, Any]) -> None:
    """JSON can write halves of a character alone, which no text may have: tokenizers and hashes fail on them."""
    try:
        json.dumps(told, ensure_ascii=False).encode()
    except (UnicodeEncodeError, RecursionError):
        raise WrongValueError("not Unicode: half of a character stands alone.") from None


def csv_rows(lines: Iterator[Line], faults: Faults) -> Iterator[Row]:
    """The first line names the columns. Lists are separated by spaces."""
    columns: list[str] = []
    for line in lines:
        try:
            fields = csv_fields(line.text)
            if columns:
                yield Row(line.where, _csv_object(columns, fields))
            else:
                columns = _columns(fields)
        except WrongValueError as error:
            faults.tell(TraceError(f"{line.where}: {error}"))


def _columns(fields: list[str]) -> list[str]:
    if _BLOCKS not in fields or len(set(fields)) < len(fields):
        raise WrongValueError(f"expected the columns' names, each once, with “{_BLOCKS}” among them.")
    return fields


def csv_fields(text: bytes) -> list[str]:
    try:
        rows = list(csv.reader([text.decode("utf-8-sig").rstrip("\r\n")], strict=True))
    except (csv.Error, UnicodeDecodeError) as error:
        raise WrongValueError(f"not CSV ({error}).") from None
    return [field.strip() for row in rows for field in row]


def _csv_object(columns: list[str], fields: list[str]) -> dict[str, Any]:
    if len(fields) != len(columns):
        raise WrongValueError(f"{len(fields):,} fields; expected {len(columns):,}, one for each column.")
    return {column: _csv_value(column, field) for column, field in zip(columns, fields, strict=True) if field}


def _csv_value(column: str, field: str) -> Any:
    if column in _LISTS:
        return field.split()
    if column == "tokens":
        found = [_csv_number(column, part) for part in field.split()]
        return found[0] if len(found) == 1 else found
    return _csv_number(column, field) if column in _NUMBERS else field


def _csv_number(column: str, field: str) -> int | float:
    try:
        return int(field) if field.isdecimal() else float(field)
    except ValueError:
        raise WrongValueError(f"“{column}” is {field!r:.40}; expected a number.") from None
