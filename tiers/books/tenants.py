"""Tenants by number, for a bounded number of them: tables have room for no more. Knows nothing about salts or keys.

A number is given again once no tier has a block of its tenant. Who comes while all are taken shares the last one.
"""

import numpy as np

from tiers.books.compiled import Ints64
from tiers.books.layout import MAX_TENANTS, NUM_TENANT_COLUMNS, NUM_TENANTS, TENANTS, Tables

# What a block's header has room for.
MAX_NAME_BYTES = 32
NOBODY = ""  # whoever has no name
SHARED = MAX_TENANTS - 1


class Tenants:
    """0 is `NOBODY`, who is one tenant like the others."""

    def __init__(self, tables: Tables) -> None:
        self._levels, self._counts = tables.levels, tables.counts
        self._numbers = {NOBODY: 0}
        self._names = [NOBODY]
        self._counts[NUM_TENANTS] = 1

    def number(self, name: str) -> int:
        """Of the tenant from now until it has no block. Raises ValueError for a name that is too long."""
        number = self._numbers.get(name)
        return self._add(name) if number is None else number

    def name(self, number: int) -> str:
        """`NOBODY` for those that share a number."""
        return NOBODY if number == SHARED else self._names[number]

    def num_blocks(self, rank: int) -> dict[str, int]:
        """By name, of those that have any in the tier."""
        counts = self._owned()[rank]
        named = {self._names[number]: int(counts[number]) for number in np.flatnonzero(counts[:SHARED])}
        return named | ({NOBODY: named.get(NOBODY, 0) + int(counts[SHARED])} if counts[SHARED] else {})

    def _owned(self) -> Ints64:
        """[tiers, MAX_TENANTS]"""
        return self._levels[:, TENANTS::NUM_TENANT_COLUMNS]

    def _add(self, name: str) -> int:
        if len(name.encode()) > MAX_NAME_BYTES:
            raise ValueError(f"The tenant “{name[:MAX_NAME_BYTES]}…” has more than {MAX_NAME_BYTES} bytes.")
        if len(self._names) < SHARED:
            self._names.append(name)
            number = len(self._names) - 1
        else:
            free = np.flatnonzero(self._owned()[:, 1:SHARED].sum(axis=0) == 0) + 1
            if not len(free):
                self._counts[NUM_TENANTS] = MAX_TENANTS
                return SHARED
            number = int(free[0])
            del self._numbers[self._names[number]]
            self._names[number] = name
        self._numbers[name] = number
        self._counts[NUM_TENANTS] = max(self._counts[NUM_TENANTS], number + 1)
        return number
