"""Turns "this block to or from the server" into operations of many blocks each. Knows nothing about tiers' books.

Fetching and sending have a lane each, so that neither waits for the other, nor gpu, cpu and disk for any of them. On
the sending lane removals go before what is stored, so that the server never holds more than it may.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from tiers.host import Host
from tiers.keys import BlockKey
from tiers.landing import Errors, FillMany, Landing
from tiers.lanes import Done, Operation, nobody_asks
from tiers.loads import Loaded, Loads, tell
from tiers.node import Copy
from tiers.pool import BlockPool
from tiers.remote import RemoteStore
from tiers.remote_look import Look
from tiers.remote_room import Room
from tiers.remote_writer import Outgoing
from tiers.transfers import Transfers

T = TypeVar("T")

# In one operation. What is fetched is asked for bit by bit (`remote_reader`); what is sent, others wait for.
FETCH_BYTES = 64 << 20
SEND_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class _Send:
    copy: Copy
    block: Outgoing
    done: Done


class Absent:
    """There is no server."""

    def fetch(self, loads: Loads, done: Loaded) -> None:
        raise AssertionError("a block is to come from a server that is not there")

    def send(self, copy: Copy, payload: memoryview, done: Done) -> None:
        raise AssertionError("a block is to go to a server that is not there")

    def delete(self, key: BlockKey) -> None:
        raise AssertionError("a block is to be removed from a server that is not there")

    def refusal(self, num_arriving: int) -> str:
        return "there is no server"

    def submit(self) -> None:
        """Nothing to be done."""


class RemoteMovers:
    """Operations are collected until `submit`. `deleted` are keys whose removal was asked for after the last look."""

    def __init__(self, store: RemoteStore, pool: BlockPool, host: Host, transfers: Transfers) -> None:
        self.store = store
        self.deleted: set[BlockKey] = set()
        self._pool = pool
        self._transfers = transfers
        self._num_fetched = max(1, FETCH_BYTES // store.value_bytes)
        self._num_sent = max(1, SEND_BYTES // store.value_bytes)
        # Half of what may be on its way in memory, so that a server that hangs leaves room for files.
        self._max_arriving = max(1, host.num_staging // 2)
        self._landing = Landing(pool, store.slab_bytes)
        self._num_fetching = 0
        self._fetches: list[tuple[Loads, Loaded]] = []
        self._sends: list[_Send] = []
        self._deletes: list[BlockKey] = []

    def fetch(self, loads: Loads, done: Loaded) -> None:
        """From the server to the gpu slots."""
        size = self._num_fetched
        self._fetches += [(loads.part(start, start + size), done) for start in range(0, len(loads), size)]

    def send(self, copy: Copy, payload: memoryview, done: Done) -> None:
        """To the server; skipped if the block has left the tier by the time it would begin."""
        node = copy.node
        block = Outgoing(node.key, node.parent_key, node.depth, payload, node.tenant_name)
        self._sends.append(_Send(copy, block, done))

    def delete(self, key: BlockKey) -> None:
        self._deletes.append(key)
        self.deleted.add(key)

    def refusal(self, num_arriving: int) -> str:
        if not self.store.breaker.is_closed:
            return self.store.breaker.refusal
        return "" if num_arriving < self._max_arriving else "too many blocks are on their way to it"

    def submit(self) -> None:
        if self._fetches:
            self._pool.fence()
            self._transfers.submit_fetch(self._take_fetches())
        self._submit_sending()

    def _submit_sending(self) -> None:
        if sending := [*self._take_deletes(), *self._take_sends()]:
            self._transfers.submit_send(sending)

    def look(self, used: Sequence[BlockKey], *, is_probe: bool, done: Callable[[Look | None], None]) -> None:
        """Tells the server what was used here, and asks what has changed: `done(None)` if it cannot be reached."""
        self._submit_sending()
        self.deleted.clear()
        found: list[Look] = []
        run = partial(self._look, used, is_probe, found)
        self._transfers.submit_send([Operation(run, lambda error, seconds: done(found[0] if found else None))])

    def measure(self, *, is_probe: bool, done: Callable[[Room | None], None]) -> None:
        """Asks how much memory the server has: `done(None)` if it cannot be reached."""
        found: list[Room] = []
        run = partial(self._measure, is_probe, found)
        self._transfers.submit_send([Operation(run, lambda error, seconds: done(found[0] if found else None))])

    # -- operations --------------------------------------------------------------------------------------------------
    def _take_fetches(self) -> list[Operation]:
        fetches, self._fetches = self._fetches, []
        self._num_fetching += sum(len(loads) for loads, _ in fetches)
        not_after = self.store.deadline(self._num_fetching * self.store.value_bytes)
        return [
            Operation(partial(self._fetch, loads, not_after), partial(self._fetched, loads, done))
            for loads, done in fetches
        ]

    def _fetch(self, loads: Loads, not_after: float) -> None:
        errors = self.store.read_many(loads.keys, partial(self._land, loads.slots), not_after)
        loads.errors |= {index: error for index, error in enumerate(errors) if error is not None}

    def _land(self, slots: Sequence[int], portion: slice, fill: FillMany) -> Errors:
        return self._landing.load_many(slots[portion], fill)

    def _fetched(self, loads: Loads, done: Loaded, error: Exception | None, seconds: float) -> None:
        self._num_fetching -= len(loads)
        tell(loads, done, error, seconds)

    def _take_sends(self) -> list[Operation]:
        sends, self._sends = self._sends, []
        operations = []
        for group in _groups(sends, self._num_sent):
            errors: list[OSError | None] = [None] * len(group)
            operations.append(Operation(partial(self._send, group, errors), partial(self._sent, group, errors)))
        return operations

    def _send(self, group: Sequence[_Send], errors: list[OSError | None]) -> None:
        live = [index for index, each in enumerate(group) if each.copy.is_live]
        if live:
            max_blocks = max(1, group[live[0]].copy.level.capacity_blocks)
            for index, error in zip(
                live, self.store.write_many([group[i].block for i in live], max_blocks), strict=True
            ):
                errors[index] = error

    def _sent(
        self, group: Sequence[_Send], errors: Sequence[OSError | None], error: Exception | None, seconds: float
    ) -> None:
        for each, own_error in zip(group, errors, strict=True):
            each.done(error or own_error, seconds / len(group))

    def _take_deletes(self) -> list[Operation]:
        keys, self._deletes = self._deletes, []
        if not keys:
            return []
        return [Operation(partial(self.store.remove_many, keys), nobody_asks)]

    def _look(self, used: Sequence[BlockKey], is_probe: bool, found: list[Look]) -> None:
        if not is_probe:
            self.store.touch_many(used)
        found.append(self.store.look(is_probe=is_probe))

    def _measure(self, is_probe: bool, found: list[Room]) -> None:
        found.append(self.store.measure(is_probe=is_probe))


def _groups(items: Sequence[T], size: int) -> list[Sequence[T]]:
    return [items[start : start + size] for start in range(0, len(items), size)]
