"""Whether a cache's books agree with each other. Changes nothing; walks everything, so it is for tests and alarms."""

from collections import Counter
from collections.abc import Iterable

from tiers.assembly import Parts
from tiers.books.books import Books
from tiers.books.layout import NONE
from tiers.host import HostSlot
from tiers.lease import Lease
from tiers.level import Level
from tiers.node import Copy, copies, nodes


def audit(parts: Parts, leases: Iterable[Lease]) -> None:
    """Raises AssertionError with a sentence about the first thing that is off."""
    leases = list(leases)
    _check_index(parts)
    _check_pins(parts, leases)
    _check_gpu(parts, leases)
    for level in parts.levels:
        _check_level(parts, level)
        _check_flows(parts, level)
    _check_host(parts)


def num_orphans(books: Books) -> int:
    """Resident blocks whose parent is not: cleared or lost tiers and restarts leave them."""
    known = [node for node in nodes(books, books.known_nodes()) if node.depth > 0 and node.fastest is not None]
    return sum(node.parent is None or node.parent.fastest is None for node in known)


def _copies(parts: Parts) -> list[Copy]:
    return copies(parts.books, parts.books.live_copies())


def _check_index(parts: Parts) -> None:
    books = parts.books
    books.check()
    known = nodes(books, books.known_nodes())
    children = Counter(node.parent for node in known if node.parent is not None)
    for node in known:
        is_wanted = node.fastest is not None or node.has_children or node.is_remembered
        assert is_wanted, "a node has neither copies nor children, and no tier remembers it"
        assert node.parent is None or node.parent.depth == node.depth - 1, "a node does not follow its parent"
        assert [child.parent for child in node.children()] == [node] * children[node], "a node has other children"
    for copy in _copies(parts):
        assert copy.level.of(copy.node) == copy, "a copy is listed under another tier"


def _check_pins(parts: Parts, leases: list[Lease]) -> None:
    pins = Counter(copy for lease in leases for copy in lease.copies if copy != NONE)
    rows = {copy.row for copy in _copies(parts)} | pins.keys()
    for copy in copies(parts.books, sorted(rows)):
        assert copy.pins == pins[copy.row], f"{pins[copy.row]} leases read a block that counts {copy.pins}"
    for lease in leases:
        assert len(lease.block_ids) == len(lease.copies), "a lease has more blocks than it knows of"
        assert lease.num_pending >= 0, "a lease waits for less than nothing"


def _check_gpu(parts: Parts, leases: list[Lease]) -> None:
    owned = [copy.slot for copy in _copies(parts) if copy.level.rank == 0]
    read = copies(parts.books, sorted({row for lease in leases for row in lease.copies if row != NONE}))
    owned += [copy.slot for copy in read if not copy.is_live]
    owned += [slot for lease in leases for slot in lease.private_slots(parts.books)]
    owned += parts.gpu.draining
    assert len(owned) == len(set(owned)), "a gpu slot has two owners"
    assert parts.gpu.promised.keys() <= set(owned), "a promised slot has no owner"
    parts.gpu.slots.check(set(owned))
    assert parts.gpu.slots.num_total == parts.gpu.pool.num_blocks, "the pool has another size than its books"


def _check_level(parts: Parts, level: Level) -> None:
    here = copies(parts.books, parts.books.live_copies(level.rank))
    assert level.num_blocks == len(here), f"{level.tier} counts {level.num_blocks} blocks and has {len(here)}"
    leavable = {copy for copy in here if not copy.node.is_pinned}
    order = level.eviction.oldest_first()
    assert len(order) == len(level.eviction) == len(leavable), f"{level.tier} counts other blocks that may leave"
    assert set(order) == leavable, f"the blocks that may leave {level.tier} are not those that nobody reads"
    level.eviction.check()
    assert level.is_behind or not level.is_beyond or not level.eviction.surplus(), (
        f"a tenant has more of {level.tier} than it may, and something of that could leave"
    )
    if level.rank:
        assert not level.is_over or not level.eviction.victim(), f"{level.tier} is too full, and something could leave"


def _check_flows(parts: Parts, level: Level) -> None:
    assert level.flows.num_there == level.num_blocks, f"{level.tier} has other blocks than came and stayed"
    for other in parts.levels:
        went, came = level.flows.left.get(other.tier, 0), other.flows.entered.get(level.tier, 0)
        assert went <= came, f"{went} blocks went from {level.tier} to {other.tier}, but {came} came"
    assert len(level.dropped) <= level.capacity_blocks, f"{level.tier} remembers more dropped blocks than it may hold"


def _check_host(parts: Parts) -> None:
    held: dict[HostSlot, int] = Counter(copy.host for copy in _copies(parts) if copy.host is not None)
    parts.host.check(held)
    if not parts.transfers.num_pending:
        assert parts.books.hosts.keys() == {copy.row for copy in _copies(parts) if copy.host}, (
            "a host slot is forgotten"
        )
        assert not parts.books.waiters, "a lease waits with no copy under way"
        for host, refs in held.items():
            assert host.refs == refs, "a host slot has references that nobody owns"
        assert parts.host.num_in_use == len(held), "a host slot is in use by nobody"
        assert not parts.gpu.draining, "a gpu slot drains with no copy under way"
        assert not parts.gpu.promised, "a gpu slot is promised with no copy under way"
