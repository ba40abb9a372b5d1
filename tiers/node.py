"""A block that is known, and its copies in tiers, as Python sees their rows. Knows nothing about who leaves when.

A view costs 0.2 µs and lives as long as its row: a node's while it has copies, children or a tier remembers it, a
copy's while it counts in its tier, is read or is under way. What is done for whole requests uses rows instead.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Optional

import numpy as np

from tiers.books import orders, steps
from tiers.books.books import Books
from tiers.books.layout import (
    CHILD,
    COPY,
    DEPTH,
    DOOMED,
    FLAGS,
    HOLDS,
    KEY,
    LIVE,
    MEMORY,
    NODE,
    NONE,
    NUM_HITS,
    PARENT,
    PINS,
    RANK,
    SLOT,
    SOURCE,
    TENANT,
    VALID,
    YOUNGER,
)
from tiers.host import HostSlot
from tiers.keys import KEY_BYTES, BlockKey, packed
from tiers.names import TIERS, Tier

if TYPE_CHECKING:
    from tiers.level import Level


class Row:
    """Equal if it is the same row."""

    __slots__ = ("books", "row")

    def __init__(self, books: Books, row: int) -> None:
        self.books = books
        self.row = row

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, Row) and self.row == other.row

    def __hash__(self) -> int:
        return self.row


class Copy(Row):
    """One block in one tier: it counts there from the moment that is decided.

    `slot` is the gpu slot, `host` the host slot that has the bytes (cpu tier, or disk until its file is written).
    `source` is where the block still validly lies while this copy is not. `pins` are leases, `holds` transfers.
    """

    __slots__ = ()

    @property
    def node(self) -> "Node":
        return Node(self.books, self.books.copies[self.row, NODE])

    @property
    def level(self) -> "Level":
        return self.books.levels[self.books.copies[self.row, RANK]]

    @property
    def tier(self) -> Tier:
        return self.level.tier if self.is_valid else self.source

    @property
    def slot(self) -> int:
        return self.books.copies[self.row, SLOT]

    @slot.setter
    def slot(self, slot: int) -> None:
        self.books.copies[self.row, SLOT] = slot

    @property
    def source(self) -> Tier:
        return TIERS[self.books.copies[self.row, SOURCE]]

    @source.setter
    def source(self, tier: Tier) -> None:
        self.books.copies[self.row, SOURCE] = TIERS.index(tier)

    @property
    def pins(self) -> int:
        return self.books.copies[self.row, PINS]

    @property
    def holds(self) -> int:
        return self.books.copies[self.row, HOLDS]

    @holds.setter
    def holds(self, holds: int) -> None:
        self.books.copies[self.row, HOLDS] = holds

    @property
    def is_live(self) -> bool:
        return bool(self.books.copies[self.row, FLAGS] & LIVE)

    @property
    def is_valid(self) -> bool:
        return bool(self.books.copies[self.row, FLAGS] & VALID)

    @property
    def is_doomed(self) -> bool:
        """Others have removed it, or it cannot be had; the books do not say so yet."""
        return bool(self.books.copies[self.row, FLAGS] & DOOMED)

    def doom(self) -> None:
        self.books.copies[self.row, FLAGS] |= DOOMED

    def validate(self) -> None:
        """Its bytes are there."""
        self.books.copies[self.row, FLAGS] |= VALID

    @property
    def host(self) -> HostSlot | None:
        return self.books.hosts.get(self.row)

    @host.setter
    def host(self, host: HostSlot | None) -> None:
        if host is None:
            self.books.hosts.pop(self.row, None)
        else:
            self.books.hosts[self.row] = host

    def give_row(self) -> None:
        """It has left its tier, and nobody reads or moves it."""
        self.books.hosts.pop(self.row, None)
        steps.give_copy(*self.books.tables, self.row)


class Node(Row):
    """A block key, its parent (the root's node for the first block of a prompt) and its copies, one place a level.

    `num_hits` are requests that found the block since it last was in no tier.
    """

    __slots__ = ()

    @property
    def key(self) -> BlockKey:
        return self.books.tables.nodes[self.row, KEY : KEY + 4].tobytes()

    @property
    def parent(self) -> Optional["Node"]:
        parent = self.books.nodes[self.row, PARENT]
        return None if parent == NONE else Node(self.books, parent)

    @property
    def parent_key(self) -> BlockKey:
        """Zeros for what was forgotten while it was under way."""
        parent = self.parent
        return bytes(KEY_BYTES) if parent is None else parent.key

    @property
    def depth(self) -> int:
        return self.books.nodes[self.row, DEPTH]

    @property
    def num_hits(self) -> int:
        return self.books.nodes[self.row, NUM_HITS]

    @property
    def tenant(self) -> int:
        """Whose block it is, by number (`Books.tenants`)."""
        return self.books.nodes[self.row, TENANT]

    @property
    def tenant_name(self) -> str:
        return self.books.tenants.name(self.tenant)

    @property
    def has_children(self) -> bool:
        return bool(self.books.nodes[self.row, CHILD] != NONE)

    @property
    def is_remembered(self) -> bool:
        """By a tier that no longer has it."""
        return bool(self.books.nodes[self.row, MEMORY] != NONE)

    def children(self) -> "Iterator[Node]":
        child = self.books.nodes[self.row, CHILD]
        while child != NONE:
            yield Node(self.books, child)
            child = self.books.nodes[child, YOUNGER]

    @property
    def fastest(self) -> Copy | None:
        return next(self._copies(), None)

    @property
    def is_pinned(self) -> bool:
        """Read by a lease, or about to be: none of its copies may leave."""
        gpu = self.copy_at(0)
        return gpu is not None and (gpu.pins > 0 or not gpu.is_valid)

    def copy_at(self, rank: int) -> Copy | None:
        copy = self.books.nodes[self.row, COPY + 2 * rank]
        return None if copy == NONE else Copy(self.books, copy)

    def live_copies(self) -> list[Copy]:
        return list(self._copies())

    def _copies(self) -> Iterator[Copy]:
        for rank in range(len(self.books.levels)):
            if (copy := self.copy_at(rank)) is not None:
                yield copy

    def descendants(self) -> "list[Node]":
        """All blocks that follow it."""
        return nodes(self.books, orders.descendants(*self.books.tables, self.row))

    def tidy(self) -> None:
        """Forget it if it has neither copies nor children, and then perhaps its parent."""
        steps.tidy(*self.books.tables, self.row)


def nodes(books: Books, rows: Sequence[int] | np.ndarray) -> list[Node]:
    return [Node(books, int(row)) for row in rows]


def copies(books: Books, rows: Sequence[int] | np.ndarray) -> list[Copy]:
    return [Copy(books, int(row)) for row in rows]


def find(books: Books, key: BlockKey) -> Node | None:
    row = books.find(packed([key])[0])
    return None if row == NONE else Node(books, row)


def ensure(books: Books, key: BlockKey, parent_key: BlockKey, depth: int) -> Node:
    """The node, made and linked to its parent if need be."""
    pair = packed([key, parent_key])
    return Node(books, books.ensure(pair[0], pair[1], depth))


def oldest_first(newest_first: Sequence[Node]) -> list[Node]:
    """An order of use in which parents are newer than their children, whatever order the blocks came in."""
    if not newest_first:
        return []
    books = newest_first[0].books
    rows = np.fromiter((node.row for node in newest_first), np.int32, len(newest_first))
    return nodes(books, books.parents_newer(rows))
