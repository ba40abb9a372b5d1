"""Whether a policy's books agree with each other. Plain Python, for tests and alarms: it walks everything."""

from collections import Counter

import numpy as np

from tiers.books.books import Books
from tiers.books.layout import (
    AFTER,
    BEFORE,
    CAPACITY,
    ENTERED,
    FLAGS,
    HELD,
    LISTS,
    LRU,
    NO_QUOTA,
    NODE,
    NONE,
    NUM_FOLLOWERS,
    NUM_HELD,
    NUM_TENANT_COLUMNS,
    NUM_TENANTS,
    OLDER,
    OWN,
    OWN_BEFORE,
    PARENT,
    POLICY,
    QUEUE,
    QUEUED,
    QUEUES,
    QUOTA,
    RANK,
    S3FIFO,
    SIZES,
    TARGET,
    TENANT,
    TENANT_QUEUES,
    TENANTS,
)


def check(books: Books, rank: int) -> None:
    """Raises AssertionError with a sentence."""
    policy = books.tables.levels[rank, POLICY]
    entries = [int(copy) for copy in books.live_copies(rank) if books.copies[copy, FLAGS] & ENTERED]
    queues = [_walk(books, rank, QUEUES + 3 * queue, BEFORE) for queue in (0, 1)]
    for queue, queued in enumerate(queues):
        size = sum(books.copies[copy, QUEUE] == queue for copy in entries)
        assert books.tables.levels[rank, SIZES + queue] == size, "the size of a queue is off"
        assert all(books.copies[copy, QUEUE] == queue for copy in queued), "a block is in a wrong queue"
    queued = queues[0] + queues[1]
    assert len(queued) == len(set(queued)), "a block is queued twice"
    assert set(queued) == {copy for copy in entries if books.copies[copy, FLAGS] & QUEUED}, "a block is in no queue"
    num_held = sum(books.copies[copy, FLAGS] & HELD > 0 for copy in entries)
    assert books.tables.levels[rank, NUM_HELD] == num_held, "the number of reads is off"
    if policy == LRU:
        _check_lru(books, entries, queued)
    else:
        _check_queues(books, rank, set(entries) - set(queued), entries)
        _check_ghosts(books, rank, policy)
    if books.tables.levels[rank, QUOTA] != NO_QUOTA:
        _check_own(books, rank, entries, queues)


def _walk(books: Books, rank: int, first: int, links: int) -> list[int]:
    found: list[int] = []
    copy = int(books.tables.levels[rank, first])
    while copy != NONE:
        assert not found or books.copies[copy, links] == found[-1], "a queue's links disagree"
        found.append(copy)
        copy = books.copies[copy, links + AFTER - BEFORE]
    assert len(found) == books.tables.levels[rank, first + 2], "a queue has another length than it says"
    return found


def _check_own(books: Books, rank: int, entries: list[int], queues: list[list[int]]) -> None:
    """A tenant's blocks are in its own queues, in the tier's order with LRU, but for those that are set aside there."""
    queued: list[int] = []
    for tenant in range(books.counts[NUM_TENANTS]):
        first = TENANTS + NUM_TENANT_COLUMNS * tenant + TENANT_QUEUES
        for queue, shared in enumerate(queues):
            own = _walk(books, rank, first + 3 * queue, OWN_BEFORE)
            assert all(
                books.copies[copy, QUEUE] == queue and books.nodes[books.copies[copy, NODE], TENANT] == tenant
                for copy in own
            ), "a block is in another tenant's queue"
            queued += own
            if books.tables.levels[rank, POLICY] == LRU:
                members = set(own)
                assert own == [copy for copy in shared if copy in members], "a tenant's queue has another order"
    assert len(queued) == len(set(queued)), "a block is in two tenants' queues"
    assert set(queued) == {copy for copy in entries if books.copies[copy, FLAGS] & OWN}, "a block has lost its tenant"
    aside = [copy for copy in entries if not books.copies[copy, FLAGS] & OWN]
    parents = {books.nodes[books.copies[copy, NODE], PARENT] for copy in entries}
    for copy in aside:
        is_bound = books.copies[copy, FLAGS] & HELD or books.copies[copy, NODE] in parents
        assert is_bound, "a block that may leave is set aside by its tenant"


def _check_lru(books: Books, entries: list[int], queued: list[int]) -> None:
    assert all(
        bool(books.copies[copy, FLAGS] & QUEUED) != bool(books.copies[copy, FLAGS] & HELD) for copy in entries
    ), "a block is read and may leave, or neither"
    age = {books.copies[copy, NODE]: at for at, copy in enumerate(queued)}
    for node, at in age.items():
        assert age.get(books.nodes[node, PARENT], at) >= at, "a block would leave before its child"


def _check_queues(books: Books, rank: int, aside: set[int], entries: list[int]) -> None:
    parents = Counter(books.nodes[books.copies[copy, NODE], PARENT] for copy in entries)
    del parents[NONE]
    for node in books.known_nodes():
        told = books.nodes[node, NUM_FOLLOWERS + 2 * rank]
        assert told == parents[int(node)], "the number of blocks that follow is off"
    for copy in aside:
        is_free = not books.copies[copy, FLAGS] & HELD and not parents[books.copies[copy, NODE]]
        assert not is_free, "a block that may leave is set aside"


def _check_ghosts(books: Books, rank: int, policy: int) -> None:
    sizes = books.tables.levels[rank, SIZES : SIZES + 2]
    ghosts = [remembered(books, rank, number) for number in (0, 1)]
    capacity = int(books.tables.levels[rank, CAPACITY])
    assert not set(ghosts[0]) & set(ghosts[1]), "a key is remembered twice"
    if policy == S3FIFO:
        assert len(ghosts[0]) <= capacity * 9 // 10, "more keys are remembered than there may be"
        return
    target = books.tables.levels.view(np.float64)[rank, TARGET]
    assert 0 <= target <= capacity, "the target is no size of the tier"
    assert not ghosts[0] or sizes[0] + len(ghosts[0]) <= capacity, "B1 is too long"
    assert not ghosts[1] or sizes.sum() + len(ghosts[0]) + len(ghosts[1]) <= 2 * capacity, "B2 is too long"


def remembered(books: Books, rank: int, number: int) -> list[int]:
    """Nodes of one list of memories, oldest first."""
    first = LISTS + 3 * number
    found: list[int] = []
    memory = int(books.tables.levels[rank, first])
    while memory != NONE:
        assert books.memories[memory, RANK] == rank, "a memory is another tier's"
        found.append(books.memories[memory, NODE])
        memory = books.memories[memory, OLDER + 1]
    assert len(found) == books.tables.levels[rank, first + 2], "a list has another length than it says"
    assert len(found) == len(set(found)), "a key is remembered twice"
    return found
