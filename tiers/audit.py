"""Whether a cache's books agree with each other. Changes nothing; walks everything, so it is for tests and alarms."""

from collections import Counter
from collections.abc import Iterable

from tiers.assembly import Parts
from tiers.host import HostSlot
from tiers.lease import Lease
from tiers.level import Level
from tiers.node import Copy


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


def _copies(parts: Parts) -> list[Copy]:
    return [copy for node in parts.index.nodes.values() for copy in node.live_copies()]


def _check_index(parts: Parts) -> None:
    for key, node in parts.index.nodes.items():
        assert node.key == key, "a node is filed under another key"
        assert node.fastest is not None or node.children, "a node has neither copies nor children"
        assert node.parent is None or node in (node.parent.children or ()), "a node's parent does not know it"
        assert node.parent is None or parts.index.nodes.get(node.parent.key) is node.parent, "a parent is not indexed"
        for child in node.children or ():
            assert child.parent is node, "a node's child has another parent"
    for copy in _copies(parts):
        assert copy.is_live, "a copy that has left its tier is still listed"
        assert copy.level.of(copy.node) is copy, "a copy is listed under another tier"


def _check_pins(parts: Parts, leases: list[Lease]) -> None:
    pins = Counter(copy for lease in leases for copy in lease.copies if copy is not None)
    for copy in _copies(parts):
        assert copy.pins == pins[copy], f"{pins[copy]} leases read a block that counts {copy.pins}"
    for lease in leases:
        assert len(lease.block_ids) == len(lease.copies), "a lease has more blocks than it knows of"
        assert lease.num_pending >= 0, "a lease waits for less than nothing"


def _check_gpu(parts: Parts, leases: list[Lease]) -> None:
    owned = [copy.slot for copy in _copies(parts) if copy.level.rank == 0]
    owned += [copy.slot for copy in {c for lease in leases for c in lease.copies if c and not c.is_live}]
    owned += [slot for lease in leases for slot in lease.private_slots()]
    owned += parts.gpu.draining
    assert len(owned) == len(set(owned)), "a gpu slot has two owners"
    assert parts.gpu.promised.keys() <= set(owned), "a promised slot has no owner"
    parts.gpu.slots.check(set(owned))
    assert parts.gpu.slots.num_total == parts.gpu.pool.num_blocks, "the pool has another size than its books"


def _check_level(parts: Parts, level: Level) -> None:
    copies = [copy for node in parts.index.nodes.values() if (copy := level.of(node)) is not None]
    assert level.num_blocks == len(copies), f"{level.tier} counts {level.num_blocks} blocks and has {len(copies)}"
    leavable = {copy for copy in copies if not copy.node.is_pinned}
    order = level.eviction.oldest_first()
    assert set(order) == leavable, f"the blocks that may leave {level.tier} are not those that nobody reads"
    level.eviction.check()
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
        for host, refs in held.items():
            assert host.refs == refs, "a host slot has references that nobody owns"
        assert parts.host.num_in_use == len(held), "a host slot is in use by nobody"
        assert not parts.gpu.draining, "a gpu slot drains with no copy under way"
        assert not parts.gpu.promised, "a gpu slot is promised with no copy under way"
