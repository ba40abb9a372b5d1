"""Packs the last values of an engine run's counters into bytes and back. Knows no database.

16 bytes a counter, the series' id and the value, little-endian: one row for a run that is read every ten seconds,
where a row a counter took a third of what a recording costs.
"""

from array import array
from collections.abc import Mapping

from dashboard.little_endian import little

_PAIR_BYTES = 16


class CountersError(ValueError):
    """Stored bytes are not counters; the message says why."""


def pack(values: Mapping[int, int]) -> bytes:
    """Series id → value, both below 2⁶³."""
    return little(array("q", [number for pair in values.items() for number in pair])).tobytes()


def unpack(packed: bytes | memoryview) -> dict[int, int]:
    """Raises CountersError."""
    told, numbers = bytes(packed), array("q")
    if len(told) % _PAIR_BYTES:
        raise CountersError(f"{len(told)} bytes are not pairs of {_PAIR_BYTES}")
    numbers.frombytes(told)
    numbers = little(numbers)
    return dict(zip(numbers[::2], numbers[1::2], strict=True))
