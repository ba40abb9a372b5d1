"""Cuts a list into pieces of a size, as Python 3.12's itertools does it. Knows nothing else."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def batched(items: Sequence[Item], size: int) -> Iterator[list[Item]]:
    return (list(items[start : start + size]) for start in range(0, len(items), size))
