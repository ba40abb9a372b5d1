"""Keeps a shared tier's books what the server's index says, a little later: what others store, use and remove.

Looks every half a second on a transfer thread and books what has changed in portions, so that a step never waits.
Knows nothing about how one looks, nor about bytes. An entry that is out of date is a failed load, and so a miss.

A look is in line with what this side stores and removes: what was asked for before it has been done when it is told,
what was asked for after it has not been done when it looked.
"""

from collections import deque
from collections.abc import Callable, Sequence

from tiers.books.books import Books
from tiers.ladder import Ladder
from tiers.names import Tier
from tiers.node import Copy, Node, copies, ensure, find, oldest_first
from tiers.remote_look import Look, RemoteEntry
from tiers.remote_movers import RemoteMovers
from tiers.remote_room import Room
from tiers.shared_level import SharedLevel

LOOK_SECONDS = 0.5
# How often a tier that is switched off asks what size it could have.
OFF_SECONDS = 5.0
# Booked at one poll: 2 to 3 ms.
PORTION = 500


class Nobody:
    """There is no shared tier to be followed."""

    room: Room | None = None
    is_known = True

    def work(self) -> bool:
        return False


class Follower:
    """`room` is what the server told about its memory at the last look, None before the first one."""

    def __init__(
        self, level: SharedLevel, books: Books, ladder: Ladder, movers: RemoteMovers, clock: Callable[[], float]
    ) -> None:
        self.room: Room | None = None
        self._level = level
        self._books = books
        self._ladder = ladder
        self._movers = movers
        self._clock = clock
        self._gone: deque[Copy] = deque()
        self._used: deque[RemoteEntry] = deque()
        self._look_at = clock()
        self._is_looking = False
        self._losses = (0, 0)
        self._is_off = False

    @property
    def is_known(self) -> bool:
        """A look has been booked wholly, or there is nothing to be known."""
        return self._is_off or (self.room is not None and not self._used and not self._gone)

    def work(self) -> bool:
        """Called by the owner at every poll; True if the books have changed."""
        self._notice()
        if not self._is_looking and self._is_due():
            self._look(is_probe=not self._movers.store.breaker.is_closed)
        return self._book()

    def _look(self, *, is_probe: bool) -> None:
        self._is_looking = True
        if self._is_off:
            self._movers.measure(is_probe=is_probe, done=self._measured)
        else:
            self._movers.look(self._level.take_used(), is_probe=is_probe, done=self._looked)

    def _is_due(self) -> bool:
        if self._clock() < self._look_at or self._gone or self._used:
            return False
        breaker = self._movers.store.breaker
        return breaker.is_closed or breaker.begin_probe()

    def _notice(self) -> None:
        """A tier that is switched off, or a server that has failed, has nothing that could be hit."""
        losses = (self._level.num_switched_off, self._movers.store.breaker.num_opened)
        if losses != self._losses:
            self._movers.store.start_over()
            self._used.clear()
            self._gone.clear()
            self._doom(self._valid_copies())
        is_off = not self._level.capacity_blocks
        if self._is_off and not is_off:
            self._look_at = self._clock()
        self._is_off, self._losses = is_off, losses

    def _measured(self, room: Room | None) -> None:
        self._is_looking = False
        self._look_at = self._clock() + OFF_SECONDS
        self.room = room or self.room

    def _looked(self, look: Look | None) -> None:
        self._is_looking = False
        self._look_at = self._clock() + LOOK_SECONDS
        if look is None:
            return
        if self._is_off or not self._movers.store.breaker.is_closed:
            self._movers.store.start_over()
            return
        self.room = look.room
        self._level.evicted["expired"] += look.news.num_expired
        self._level.evicted["capacity"] += look.num_trimmed
        self._used += look.news.used
        if look.news.is_full:
            there = {entry.key for entry in look.news.used}
            self._doom([copy for copy in self._valid_copies() if copy.node.key not in there])
        else:
            nodes = [node for key in look.news.gone if (node := find(self._books, key)) is not None]
            self._doom([copy for node in nodes if (copy := self._level.of(node)) is not None and copy.is_valid])

    def _valid_copies(self) -> list[Copy]:
        """Of the blocks that are stored there, as far as is known here. Walks everything."""
        return [c for c in copies(self._books, self._books.live_copies(self._level.rank)) if c.is_valid]

    def _doom(self, gone: Sequence[Copy]) -> None:
        """They are forgotten in portions; one that leaves before, and comes back, is not meant."""
        for copy in gone:
            copy.doom()
        self._gone += gone

    # -- books -------------------------------------------------------------------------------------------------------
    def _book(self) -> bool:
        if self._gone:
            self._forget([self._gone.popleft() for _ in range(min(PORTION, len(self._gone)))])
            return True
        if self._used:
            self._add([self._used.popleft() for _ in range(min(PORTION, len(self._used)))])
            return True
        return False

    def _forget(self, gone: Sequence[Copy]) -> None:
        for copy in gone:
            if copy.is_doomed:
                self._ladder.forget(copy)

    def _add(self, entries: Sequence[RemoteEntry]) -> None:
        """Newest of their tier, in their order, but no block older than those that follow it."""
        nodes = [node for entry in entries if (node := self._known(entry)) is not None]
        for node in oldest_first(nodes[::-1]):
            copy = self._level.of(node)
            if copy is not None and not node.is_pinned:
                self._level.used_elsewhere(copy)

    def _known(self, entry: RemoteEntry) -> Node | None:
        """The block's node, with a copy in the tier; None for what was removed since, or cannot be true."""
        if entry.key in self._movers.deleted or not self._is_plausible(entry):
            return None
        node = ensure(self._books, entry.key, entry.parent_key, entry.position)
        if node.fastest is None:
            self._books.give_to(node.row, entry.tenant)
        if self._level.of(node) is None:
            self._level.add(node, Tier.REMOTE).validate()
        return node

    def _is_plausible(self, entry: RemoteEntry) -> bool:
        """A block follows its parent by one: so no index, whoever wrote it, can lead in circles."""
        node, parent = find(self._books, entry.key), find(self._books, entry.parent_key)
        is_placed = node is None or node.depth == entry.position
        return is_placed and (parent is None or parent.depth == entry.position - 1)
