"""A table of named columns, as CSV (RFC 4180) or as Parquet. Knows nothing about what is in it.

What was not observed is an empty cell, or a null. A replayed trace's tenants have names that anybody may have chosen.
"""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
Cell = int | float | str | None


class Kind(StrEnum):
    TIME = "time"  # Unix seconds
    INTEGER = "integer"
    NUMBER = "number"
    TEXT = "text"


@dataclass(frozen=True)
class Column:
    name: str
    kind: Kind
    cells: Sequence[Cell]


@dataclass(frozen=True)
class Table:
    columns: Sequence[Column]

    def __post_init__(self) -> None:
        if len({len(column.cells) for column in self.columns}) > 1:
            raise ValueError("The columns of a table have different lengths.")


def as_csv(table: Table) -> bytes:
    """The names, then a line a row; times in UTC as 2026-01-31T12:00:00Z. Numbers read back as the same numbers.

    A text that a spreadsheet would take for a formula has an apostrophe before it.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow([_plain(column.name) for column in table.columns])
    writer.writerows(zip(*(_texts(column) for column in table.columns), strict=True))
    return text.getvalue().encode()


def _texts(column: Column) -> Sequence[Cell]:
    if column.kind is Kind.TIME:
        return [
            None if cell is None else f"{datetime.fromtimestamp(int(cell), UTC):%Y-%m-%dT%H:%M:%SZ}"
            for cell in column.cells
        ]
    if column.kind is Kind.TEXT:
        return [_plain(cell) if isinstance(cell, str) else cell for cell in column.cells]
    return column.cells


def _plain(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) else text


def as_parquet(table: Table) -> bytes:
    """64-bit integers and floats, UTF-8, times as milliseconds in UTC; all may be null."""
    from arro3.core import Array, DataType  # 12 MiB of code that only a download needs
    from arro3.core import Table as ArrowTable
    from arro3.io import write_parquet

    types = {Kind.INTEGER: DataType.int64(), Kind.NUMBER: DataType.float64(), Kind.TEXT: DataType.string()}

    def array(column: Column) -> Array:
        if column.kind is not Kind.TIME:
            return Array(column.cells, type=types[column.kind])
        milliseconds = [None if cell is None else int(cell) * 1000 for cell in column.cells]
        return Array(milliseconds, type=DataType.int64()).cast(DataType.timestamp("ms", tz="UTC"))

    file = io.BytesIO()
    write_parquet(
        ArrowTable.from_arrays(
            [array(column) for column in table.columns], names=[each.name for each in table.columns]
        ),
        file,
    )
    return file.getvalue()
