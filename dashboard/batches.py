"""Cuts a list into pieces of a size, as Python 3.12's itertools does it. Knows nothing else."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")

# Ids in one statement: SQLite takes 32,766 parameters, and a million bytes where they are written out.
MANY = 20_000


def batched(items: Sequence[Item], size: int) -> Iterator[list[Item]]:
    return (list(items[start : start + size]) for start in range(0, len(items), size))


def evenly(items: Sequence[Item], most: int) -> Iterator[list[Item]]:
    """As few pieces as `most` items each allow, of nearly one size: no worker has a whole piece more than another."""
    num_pieces = -(-len(items) // most)
    return batched(items, -(-len(items) // num_pieces)) if num_pieces else iter(())
