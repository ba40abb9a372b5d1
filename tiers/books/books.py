"""The tables of one cache: they grow, are looked at by Python, and are checked. What is done to them is compiled.

Knows nothing about bytes, leases or threads; one thread calls it.
"""

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from tiers.books import orders, steps
from tiers.books.compiled import Ints32, Ints64
from tiers.books.layout import (
    COPIES,
    COPY,
    FLAGS,
    HOLDS,
    IS_KNOWN,
    KEY,
    LIVE,
    MEMORIES,
    MEMORY,
    NEXT,
    NODE,
    NODES,
    NONE,
    NUM_INDEXED,
    NUM_OVER,
    NUM_REFS,
    NUM_TENANT_COLUMNS,
    PINS,
    QUOTA,
    RANK,
    TENANT,
    TENANTS,
    empty_table,
    empty_tables,
)
from tiers.books.tenants import Tenants

if TYPE_CHECKING:
    from tiers.host import HostSlot
    from tiers.lease import Lease
    from tiers.level import Level

FIRST_ROWS = 1024
# From here on tables grow by a quarter, so that at most a fifth of them is unused.
MANY_ROWS = 1 << 20
# Entries of the index at most two thirds full: 12 to 24 bytes a block.
INDEX_FULL = 2 / 3


class Books:
    """`nodes`, `copies` and `counts` are Python's views of the tables: an element in 50 ns, where numpy takes 100.

    `levels` are the tiers by rank. `hosts` are copies' host slots, `waiters` the leases that wait for a copy
    which another asked for.
    """

    def __init__(self, num_levels: int) -> None:
        self.tables = empty_tables(num_levels, FIRST_ROWS)
        self.tenants = Tenants(self.tables)
        self.levels: list[Level] = []
        self.hosts: dict[int, HostSlot] = {}
        self.waiters: dict[int, list[Lease]] = {}
        self._look()

    def _look(self) -> None:
        self.nodes, self.copies = self.tables.nodes.data, self.tables.copies.data
        self.memories, self.counts = self.tables.memories.data, self.tables.counts.data

    # -- room --------------------------------------------------------------------------------------------------------
    def reserve(self, *, nodes: int = 0, copies: int = 0, memories: int = 0) -> None:
        """So many rows can be taken."""
        for pool, number, wanted in ((NODES, 0, nodes), (COPIES, 1, copies), (MEMORIES, 2, memories)):
            if wanted and len(self.tables[number]) - self.counts[pool] + self.counts[pool + 2] < wanted:
                self._grow(number, self.counts[pool] + wanted)
        if nodes and self.counts[NUM_INDEXED] + nodes > len(self.tables.places) * INDEX_FULL:
            self._grow_index(self.counts[NUM_INDEXED] + nodes)

    def _grow(self, number: int, num_needed: int) -> None:
        table = self.tables[number]
        num_rows = max(num_needed, len(table) * 2 if len(table) < MANY_ROWS else len(table) * 5 // 4)
        grown = empty_table(num_rows, table.shape[1])
        grown[: len(table)] = table
        self.tables = self.tables._replace(**{self.tables._fields[number]: grown})
        self._look()

    def _grow_index(self, num_needed: int) -> None:
        size = 1 << int(num_needed / INDEX_FULL).bit_length()
        index = np.zeros(size, np.int64)
        steps.refill(self.tables.places, index)
        self.tables = self.tables._replace(places=index)

    @property
    def num_bytes(self) -> int:
        """Of the tables, used or not."""
        return sum(table.nbytes for table in self.tables)

    # -- rows --------------------------------------------------------------------------------------------------------
    def find(self, key: Ints32) -> int:
        """The node with that packed key, or NONE."""
        return steps.find(*self.tables, key)

    def ensure(self, key: Ints32, parent_key: Ints32, depth: int) -> int:
        """The node, made and linked to its parent if need be."""
        self.reserve(nodes=2)
        return steps.ensure(*self.tables, key, parent_key, depth)

    def known_nodes(self) -> Ints64:
        """All that can be found by key. Walks everything."""
        entries = self.tables.places[self.tables.places != 0]
        return (entries & 0xFFFFFFFF) - 1

    def live_copies(self, rank: int | None = None) -> Ints64:
        """Of one tier, or of all. Walks everything."""
        copies = self.tables.copies[: self.counts[COPIES]]
        is_live = copies[:, FLAGS] & LIVE > 0
        return np.flatnonzero(is_live if rank is None else is_live & (copies[:, RANK] == rank))

    def parents_newer(self, newest_first: Ints32) -> Ints32:
        """An order of use, oldest first, where parents are newer than their children, however they came in."""
        return orders.parents_newer(*self.tables, newest_first)

    def give_to(self, node: int, tenant: str) -> None:
        """A block that no tier has yet is that tenant's. Raises ValueError for a name that is too long."""
        self.nodes[node, TENANT] = self.tenants.number(tenant)

    # -- proof -------------------------------------------------------------------------------------------------------
    def check(self) -> None:
        """Raises AssertionError with a sentence if rows are lost, doubled or not where the index says. Walks all."""
        known = self.known_nodes().tolist()
        assert len(known) == len(set(known)) == self.counts[NUM_INDEXED], "the index counts other blocks than it has"
        for node in known:
            assert self.nodes[node, IS_KNOWN], "the index has a block that was forgotten"
            assert self.find(_readonly(self.tables.nodes[node, KEY : KEY + 4])) == node, (
                "a block is not found by its key"
            )
        free = [self._free_rows(pool, number) for number, pool in enumerate((NODES, COPIES, MEMORIES))]
        self._check_refs(set(known), *free)
        self._check_memories(set(known), free[2])
        for rank in range(len(self.levels)):
            self._check_tenants(rank)

    def _check_tenants(self, rank: int) -> None:
        owners = Counter(self.nodes[self.copies[copy, NODE], TENANT] for copy in self.live_copies(rank))
        level = self.tables.levels[rank]
        counts = level[TENANTS::NUM_TENANT_COLUMNS]
        assert {number: counts[number] for number in np.flatnonzero(counts)} == owners, "a tenant has other blocks"
        num_over = np.count_nonzero(counts > level[QUOTA])
        assert level[NUM_OVER] == num_over, "the number of tenants that have too much is off"

    def _check_refs(
        self, known: set[int], free_nodes: set[int], free_copies: set[int], free_memories: set[int]
    ) -> None:
        copies = set(range(self.counts[COPIES])) - free_copies
        refs = Counter(self.copies[copy, NODE] for copy in copies)
        assert not free_nodes & (known | refs.keys()), "a row that is free is in use"
        for node in set(range(self.counts[NODES])) - free_nodes:
            assert node in known or refs[node], "a block's row is lost"
            assert self.nodes[node, NUM_REFS] == refs[node], "a block counts other copies than name it"
            listed = {self.nodes[node, COPY + 2 * rank] for rank in range(len(self.levels))} - {NONE}
            assert all(self.copies[copy, NODE] == node and self.copies[copy, FLAGS] & LIVE for copy in listed), (
                "a block lists a copy that is another's or has left"
            )
        for copy in copies:
            is_live = self.copies[copy, FLAGS] & LIVE
            is_busy = self.copies[copy, PINS] or self.copies[copy, HOLDS]
            assert is_live or is_busy, "a copy's row is lost"
            rank = self.copies[copy, RANK]
            assert not is_live or self.nodes[self.copies[copy, NODE], COPY + 2 * rank] == copy, "a copy is not listed"

    def _check_memories(self, known: set[int], free: set[int]) -> None:
        used = set(range(self.counts[MEMORIES])) - free
        found: list[int] = []
        for node in known:
            memory = self.nodes[node, MEMORY]
            while memory != NONE:
                assert self.memories[memory, NODE] == node, "a block has another's memory"
                found.append(memory)
                memory = self.memories[memory, NEXT]
        assert sorted(found) == sorted(used), "a memory's row is lost"

    def _free_rows(self, pool: int, number: int) -> set[int]:
        rows: set[int] = set()
        row = self.counts[pool + 1]
        while row != NONE:
            assert row not in rows, "a row is free twice"
            rows.add(row)
            row = int(self.tables[number][row, 0])
        assert len(rows) == self.counts[pool + 2], "the number of free rows is off"
        return rows


def _readonly(key: Ints32) -> Ints32:
    """As `keys.packed` makes them: one kind of array, so that functions are compiled once."""
    return np.frombuffer(key.tobytes(), np.int32)
