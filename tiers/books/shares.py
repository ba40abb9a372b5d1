"""How many blocks of a tier each tenant has, and who has more than it may. Compiled; knows no names and no order."""

from tiers.books.compiled import part
from tiers.books.layout import (
    NO_QUOTA,
    NODE,
    NUM_OVER,
    NUM_TENANT_COLUMNS,
    NUM_TENANTS,
    QUOTA,
    TENANT,
    TENANTS,
    Tables,
    at,
    wide,
)


@part
def tenant_of(t: Tables, copy: int) -> int:
    return at(t.nodes, at(t.copies, copy, NODE), TENANT)


@part
def place_of(tenant: int) -> int:
    """The first of its columns: the number of its blocks."""
    return TENANTS + NUM_TENANT_COLUMNS * tenant


@part
def has_quota(t: Tables, rank: int) -> bool:
    return t.levels[rank, QUOTA] != NO_QUOTA


@part
def is_beyond(t: Tables, rank: int, tenant: int, num_more: int) -> bool:
    """With so many more blocks the tenant would have more than it may."""
    return t.levels[rank, place_of(tenant)] + num_more > t.levels[rank, QUOTA]


@part
def charge(t: Tables, node: int, rank: int) -> None:
    place = place_of(at(t.nodes, node, TENANT))
    t.levels[rank, NUM_OVER] += t.levels[rank, place] == t.levels[rank, QUOTA]
    t.levels[rank, place] += 1


@part
def discharge(t: Tables, node: int, rank: int) -> None:
    place = place_of(at(t.nodes, node, TENANT))
    t.levels[rank, place] -= 1
    t.levels[rank, NUM_OVER] -= t.levels[rank, place] == t.levels[rank, QUOTA]


@part
def count_over(t: Tables, rank: int) -> None:
    """After a change of the quota."""
    t.levels[rank, NUM_OVER] = 0
    for tenant in range(t.counts[NUM_TENANTS]):
        t.levels[rank, NUM_OVER] += is_beyond(t, rank, wide(tenant), wide(0))


@part
def inherited(t: Tables, node: int, is_there: bool, tenant: int) -> int:
    """Whose a block is: that of the block before it, `node`, if some tier has that."""
    return at(t.nodes, node, TENANT) if is_there else tenant
