"""Writes what gpu and cpu hold to the disk tier at a clean stop, so that a restart finds it. Knows no requests.

Newest first, so that parents come before their children and the most useful blocks are kept when time runs out.
"""

from collections import Counter
from collections.abc import Callable, Iterator

from tiers.assembly import Parts
from tiers.disk import DiskStore
from tiers.level import Level
from tiers.names import Tier
from tiers.node import Copy


def write_down(parts: Parts, disk: DiskStore, level: Level, has_time: Callable[[], bool]) -> int:
    """Returns the blocks written. Older blocks on disk make room; an error ends it. Transfers must be at rest."""
    num_written = 0
    written_of: Counter[int] = Counter()
    for copy in newest_first(parts, level):
        tenant = copy.node.tenant
        if level.is_at_quota(copy.node) and not _make_way(disk, level, tenant, written_of[tenant]):
            continue
        if not has_time() or not _make_room(disk, level, num_written):
            break
        try:
            disk.write(
                copy.node.key, copy.node.parent_key, copy.node.depth, bytes_of(parts, copy), copy.node.tenant_name
            )
        except OSError as error:
            level.failed("store", error)
            break
        _book(level, copy)
        num_written += 1
        written_of[tenant] += 1
    return num_written


def newest_first(parts: Parts, level: Level) -> Iterator[Copy]:
    """Valid copies in gpu and cpu of blocks that the level takes and has not."""
    for faster in parts.levels:
        if faster.tier in (Tier.GPU, Tier.CPU):
            for copy in reversed(faster.eviction.oldest_first()):
                if copy.is_valid and level.of(copy.node) is None and level.takes(copy.node):
                    yield copy


def _make_room(disk: DiskStore, level: Level, num_written: int) -> bool:
    """False once the tier is full of what this stop has written."""
    if level.num_blocks < level.capacity_blocks:
        return True
    oldest = level.eviction.victim()
    if oldest is None or num_written >= level.capacity_blocks:
        return False
    _remove(disk, level, oldest, "capacity")
    return True


def _make_way(disk: DiskStore, level: Level, tenant: int, num_written: int) -> bool:
    """As above, among the blocks of a tenant that has as many as it may."""
    oldest = level.eviction.victim_of(tenant)
    if oldest is None or num_written >= level.quota:
        level.refuse()
        return False
    _remove(disk, level, oldest, "quota")
    return True


def _remove(disk: DiskStore, level: Level, copy: Copy, reason: str) -> None:
    node = copy.node
    level.remove(copy)
    level.evicted[reason] += 1
    disk.remove(node.key)
    copy.give_row()
    node.tidy()


def bytes_of(parts: Parts, copy: Copy) -> memoryview:
    """A slab in host memory."""
    if copy.host is not None:
        return parts.host.pool.read(copy.host.slot)
    slab = memoryview(bytearray(parts.config.slab.num_bytes))
    parts.gpu.pool.store(copy.slot, slab)
    return slab


def _book(level: Level, origin: Copy) -> None:
    copy = level.add(origin.node, Tier.DISK, origin.level.tier)
    copy.validate()
    level.num_stored += 1
    level.eviction.touch(copy)
