"""Sends what gpu and cpu hold to the remote tier at a clean stop, as far as it is not there. Knows no requests.

Where blocks go there only as they leave faster tiers, a stop would take them from the others. Newest first, a few
mebibytes at a time, so that an end of time or of the server costs the least useful ones.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress

from tiers.assembly import Parts
from tiers.errors import UnreachableError
from tiers.keys import BlockKey
from tiers.level import Level
from tiers.node import Copy
from tiers.remote import RemoteStore
from tiers.remote_writer import Outgoing
from tiers.writedown import bytes_of, newest_first

log = logging.getLogger(__name__)

GROUP_BYTES = 8 << 20


def send_down(parts: Parts, remote: RemoteStore, level: Level, has_time: Callable[[], bool]) -> int:
    """Returns how many blocks the server took; an error ends it. Transfers must be at rest.

    The books are not told: this side's are over, and the next one's are what the server says.
    """
    copies = list(_to_send(parts, level))[: level.capacity_blocks]
    num_at_once = max(1, GROUP_BYTES // remote.value_bytes)
    sent: list[BlockKey] = []
    for start in range(0, len(copies), num_at_once):
        if not has_time():
            break
        blocks = [_outgoing(parts, copy) for copy in copies[start : start + num_at_once]]
        errors = remote.write_many(blocks, level.capacity_blocks)
        sent += [block.key for block, error in zip(blocks, errors, strict=True) if error is None]
        if failed := [error for error in errors if error is not None]:
            log.warning("the remote tier takes no more blocks at this stop: %s", failed[0])
            break
    with suppress(UnreachableError):
        remote.touch_many(sent[::-1])  # what was sent first was used last
    return len(sent)


def _to_send(parts: Parts, level: Level) -> Iterator[Copy]:
    """Each block once, and of a tenant no more than it may have there with what is there already."""
    keys: set[BlockKey] = set()
    num_sent: Counter[int] = Counter()
    for copy in newest_first(parts, level):
        node = copy.node
        if node.key not in keys and not level.is_at_quota(node, num_sent[node.tenant]):
            keys.add(node.key)
            num_sent[node.tenant] += 1
            yield copy


def _outgoing(parts: Parts, copy: Copy) -> Outgoing:
    node = copy.node
    return Outgoing(node.key, node.parent_key, node.depth, bytes_of(parts, copy), node.tenant_name)
