"""What Python asks of the tables, one block at a time, compiled. Knows nothing about slots, bytes or leases.

Each takes the tables one by one: numba unpacks six arrays in 0.7 µs, a named tuple of them in 3. Rows that are taken
must be there: `Books` sees to it.
"""

from tiers.books import family, index, memories, moves
from tiers.books.compiled import Ints32, Ints64, entry
from tiers.books.layout import ARC, NONE, POLICY, Tables
from tiers.policies import choose


@entry
def find(
    nodes: Ints32, copies: Ints32, mems: Ints32, places: Ints64, levels: Ints64, counts: Ints64,
    key: Ints32,
) -> int:  # fmt: skip
    t = Tables(nodes, copies, mems, places, levels, counts)
    return index.find(t, key)


@entry
def ensure(
    nodes: Ints32, copies: Ints32, mems: Ints32, places: Ints64, levels: Ints64, counts: Ints64,
    key: Ints32, parent_key: Ints32, depth: int,
) -> int:  # fmt: skip
    t = Tables(nodes, copies, mems, places, levels, counts)
    return family.ensure(t, key, parent_key, depth)


@entry
def tidy(
    nodes: Ints32, copies: Ints32, mems: Ints32, places: Ints64, levels: Ints64, counts: Ints64,
    node: int,
) -> None:  # fmt: skip
    t = Tables(nodes, copies, mems, places, levels, counts)
    family.tidy(t, node)


@entry
def add(
    nodes: Ints32, copies: Ints32, mems: Ints32, places: Ints64, levels: Ints64, counts: Ints64,
    node: int, rank: int, source: int, origin: int,
) -> int:  # fmt: skip
    t = Tables(nodes, copies, mems, places, levels, counts)
    return moves.add(t, node, rank, source, origin)


@entry
def leave(
    nodes: Ints32, copies: Ints32, mems: Ints32, places: Ints64, levels: Ints64, counts: Ints64,
    copy: int, how: int,
) -> None:  # fmt: skip
    t = Tables(nodes, copies, mems, places, levels, counts)
    moves.leave(t, copy, how)


@entry
def went(
    nodes: Ints32, copies: Ints32, mems: Ints32, places: Ints64, levels: Ints64, counts: Ints64,
    node: int, rank: int, target: int,
) -> None:  # fmt: skip
    t = Tables(nodes, copies, mems, places, levels, counts)
    moves.went(t, node, rank, target)


@entry
def give_copy(
    nodes: Ints32, copies: Ints32, mems: Ints32, places: Ints64, levels: Ints64, counts: Ints64,
    copy: int,
) -> None:  # fmt: skip
    t = Tables(nodes, copies, mems, places, levels, counts)
    moves.give_copy(t, copy)


@entry
def touch_all(
    nodes: Ints32, copies: Ints32, mems: Ints32, places: Ints64, levels: Ints64, counts: Ints64,
    node: int,
) -> None:  # fmt: skip
    t = Tables(nodes, copies, mems, places, levels, counts)
    moves.touch_all(t, node)


@entry
def touch(
    nodes: Ints32, copies: Ints32, mems: Ints32, places: Ints64, levels: Ints64, counts: Ints64,
    copy: int, is_noted: bool,
) -> None:  # fmt: skip
    t = Tables(nodes, copies, mems, places, levels, counts)
    choose.touch(t, copy)
    if is_noted:
        choose.note(t, copy)


@entry
def enter(
    nodes: Ints32, copies: Ints32, mems: Ints32, places: Ints64, levels: Ints64, counts: Ints64,
    copy: int,
) -> None:  # fmt: skip
    t = Tables(nodes, copies, mems, places, levels, counts)
    choose.enter(t, copy)
    choose.note(t, copy)


@entry
def hold(
    nodes: Ints32, copies: Ints32, mems: Ints32, places: Ints64, levels: Ints64, counts: Ints64,
    copy: int,
) -> None:  # fmt: skip
    t = Tables(nodes, copies, mems, places, levels, counts)
    choose.hold(t, copy)


@entry
def victim(
    nodes: Ints32, copies: Ints32, mems: Ints32, places: Ints64, levels: Ints64, counts: Ints64,
    rank: int, key: Ints32, tenant: int, num_coming: int,
) -> int:  # fmt: skip
    """`key` is empty where it is not known for what room is made, `tenant` is NONE where it is for nobody's blocks.

    `num_coming` of its blocks do not count yet; NONE: only its own may leave.
    """
    t = Tables(nodes, copies, mems, places, levels, counts)
    incoming = index.find(t, key) if len(key) > 0 and t.levels[rank, POLICY] == ARC else NONE
    if tenant == NONE or num_coming == NONE:
        return choose.victim(t, rank, incoming, tenant)
    return choose.victim_for(t, rank, incoming, tenant, num_coming)


@entry
def surplus(
    nodes: Ints32, copies: Ints32, mems: Ints32, places: Ints64, levels: Ints64, counts: Ints64,
    rank: int,
) -> int:  # fmt: skip
    t = Tables(nodes, copies, mems, places, levels, counts)
    return choose.surplus(t, rank)


@entry
def replace_policy(
    nodes: Ints32, copies: Ints32, mems: Ints32, places: Ints64, levels: Ints64, counts: Ints64,
    rank: int, policy: int,
) -> None:  # fmt: skip
    t = Tables(nodes, copies, mems, places, levels, counts)
    choose.replace(t, rank, policy)


@entry
def resized(
    nodes: Ints32, copies: Ints32, mems: Ints32, places: Ints64, levels: Ints64, counts: Ints64,
    rank: int, max_drops: int, quota: int,
) -> None:  # fmt: skip
    t = Tables(nodes, copies, mems, places, levels, counts)
    choose.resized(t, rank, quota)
    memories.limit_drops(t, rank, max_drops)


@entry
def refill(old: Ints64, new: Ints64) -> None:
    index.refill(old, new)
