"""What a hierarchy of tiers must do, written as plainly as possible: one list a tier, no threads, no bytes, no speed.

Requests come one after the other, and all copies of one have settled before the next. Use it to predict the split of
a whole workload: `request_tokens` for what an engine is asked, `request` for keys.
"""

from collections import Counter
from collections.abc import Sequence

from tiers import TIERS, BlockKey, Tier, WriteMode, chain_keys


class OracleHierarchy:
    """`sizes` are blocks, gpu first. In each tier `order` is what may leave, oldest first; `pinned` is being read.

    Each first block of a prompt is another tenant's; `quotas` are shares of a tier that one of them may have.

    A fourth tier is shared by engines: also with write_back it keeps what is read. It may not be switched off and on.

    `num_hits` counts requests that found a block since it last was nowhere: with write_selective the `hits_to_store`th
    brings it into the slower tiers.
    """

    def __init__(self, sizes: Sequence[int], mode: WriteMode, hits_to_store: int = 2) -> None:
        self.sizes = list(sizes)
        self.mode = mode
        self.order: list[list[BlockKey]] = [[] for _ in sizes]
        self.pinned: list[set[BlockKey]] = [set() for _ in sizes]
        self.parent: dict[BlockKey, BlockKey] = {}
        self.num_hits: Counter[BlockKey] = Counter()
        self.hits_to_store = hits_to_store
        self.quotas = [1.0 for _ in sizes]
        self.tenants: list[BlockKey] = []

    def request_tokens(
        self, root: BlockKey, prompt: Sequence[int], generated: Sequence[int], block_size: int
    ) -> list[Tier]:
        """A request with its answer; the last generated token is never fed back, so it fills no block."""
        token_ids = [*prompt, *generated][: max(len(prompt), len(prompt) + len(generated) - 1)]
        num_blocks = -(-len(token_ids) // block_size)
        keys = chain_keys(root, token_ids, block_size)
        return self.request(keys, num_hittable=(len(prompt) - 1) // block_size, num_blocks=num_blocks)

    def request(self, keys: Sequence[BlockKey], *, num_hittable: int, num_blocks: int) -> list[Tier]:
        """`keys` of all blocks that are full at the end, of which the first `num_hittable` may be reused.

        Returns the tier of each block that was found. `num_blocks` are held at the end, full or not.
        """
        self.parent.update(zip(keys[1:], keys, strict=False))
        self.tenants += [tenant for tenant in keys[:1] if tenant not in self.tenants]
        tiers = self.match(keys[:num_hittable])
        loaded = [key for key, tier in zip(keys, tiers, strict=False) if tier is not Tier.GPU]
        for key in keys[: len(tiers)]:
            self.num_hits[key] += 1
            self._pin(key)
        self._free_slots(keys[:1], tiers.count(Tier.GPU), len(loaded), num_blocks)
        for key in [key for key in keys[: len(tiers)] if key not in loaded]:
            self._store_through(key)
        self._rebalance()
        for key in loaded:
            self._store_through(key)
        for key in keys[len(tiers) :]:
            is_new = key not in self.order[0]
            self._pin(key)
            if is_new:
                self._store_through(key)
        self._rebalance()
        self._unpin(keys)
        self._rebalance()
        return tiers

    def match(self, keys: Sequence[BlockKey]) -> list[Tier]:
        found: list[Tier] = []
        for key in keys:
            ranks = [rank for rank, order in enumerate(self.order) if key in order]
            if not ranks:
                break
            found.append(TIERS[ranks[0]])
        return found

    def resize(self, rank: int, size: int) -> None:
        self.sizes[rank] = size
        while not rank and len(self.order[rank]) > size:
            self._evict(rank)
        self._rebalance()

    def limit(self, rank: int, share: float) -> None:
        self.quotas[rank] = share
        self._rebalance()

    def clear(self, rank: int) -> None:
        self.order[rank].clear()
        self._forget_hits()

    # -- tenants -----------------------------------------------------------------------------------------------------
    def _tenant(self, key: BlockKey) -> BlockKey:
        while key in self.parent:
            key = self.parent[key]
        return key

    def _is_beyond(self, rank: int, tenant: BlockKey, num_more: int = 0) -> bool:
        if self.quotas[rank] == 1:
            return False
        owned = sum(self._tenant(key) == tenant for key in (*self.order[rank], *self.pinned[rank]))
        return owned + num_more > max(1, int(self.sizes[rank] * self.quotas[rank]))

    def _own(self, rank: int, tenant: BlockKey) -> BlockKey | None:
        return next((key for key in self.order[rank] if self._tenant(key) == tenant), None)

    def _free_slots(self, first: Sequence[BlockKey], num_there: int, num_loaded: int, num_blocks: int) -> None:
        """One by one: loaded blocks count already, new ones do not. What a tenant at its share has leaves first."""
        for number in range(num_blocks - num_there):
            while len(self.order[0]) + num_there + number >= self.sizes[0]:
                num_coming = max(0, number + 1 - num_loaded)
                beyond = [tenant for tenant in first if self._is_beyond(0, tenant, num_coming)]
                self._evict(0, self._own(0, beyond[0]) if beyond else None)

    def _trim(self, rank: int) -> None:
        for tenant in self.tenants:
            while self._is_beyond(rank, tenant) and (key := self._own(rank, tenant)):
                self._evict(rank, key)

    # -- blocks ------------------------------------------------------------------------------------------------------
    def _pin(self, key: BlockKey) -> None:
        """Into gpu, where nothing pushes it out; exclusive tiers below give it up."""
        for rank, order in enumerate(self.order):
            if key in order:
                order.remove(key)
                if self.mode is not WriteMode.WRITE_BACK or TIERS[rank] is Tier.REMOTE:
                    self.pinned[rank].add(key)
        self.pinned[0].add(key)

    def _unpin(self, keys: Sequence[BlockKey]) -> None:
        """Tail first, so that the head is the newest."""
        for key in reversed(keys):
            for order, pinned in zip(self.order, self.pinned, strict=True):
                if key in pinned:
                    order.append(key)
                    pinned.remove(key)

    def _evict(self, rank: int, own: BlockKey | None = None) -> None:
        """The oldest, or that one."""
        key = self.order[rank][0] if own is None else own
        self.order[rank].remove(key)
        lower = range(rank + 1, len(self.sizes))
        target = next((rank for rank in lower if self.sizes[rank] and self._is_hit_enough(key)), None)
        if target is None:
            self._drop_after(key)
            return
        if self.mode is not WriteMode.WRITE_BACK and not self._is_taken_down(key, target):
            self._drop_after(key)
            return
        while key is not None and (key in self.order[target] or key not in self.pinned[target]):
            self._to_newest(target, key)
            parent = self.parent.get(key)
            if parent not in self.order[target]:
                break
            key = parent

    def _is_taken_down(self, key: BlockKey, target: int) -> bool:
        """A tier that writes through got the block as it filled: what it has let go since comes only into free room."""
        is_elsewhere = any(key in tier for tier in (*self.order, *self.pinned))
        has_room = self._num_blocks(target) < self.sizes[target] and not self._is_beyond(target, self._tenant(key), 1)
        return not is_elsewhere and has_room

    def _drop_after(self, gone: BlockKey) -> None:
        """A block has left its last tier: those after it cannot be found any more, unless they are being read."""
        if any(gone in tier for tier in (*self.order, *self.pinned)):
            return
        self.order = [[key for key in order if not self._is_after(key, gone)] for order in self.order]
        self._forget_hits()

    def _is_hit_enough(self, key: BlockKey) -> bool:
        return self.mode is not WriteMode.WRITE_SELECTIVE or self.num_hits[key] >= self.hits_to_store

    def _forget_hits(self) -> None:
        for key in [key for key in self.num_hits if not any(key in tier for tier in (*self.order, *self.pinned))]:
            del self.num_hits[key]

    def _is_after(self, key: BlockKey, gone: BlockKey) -> bool:
        while key in self.parent:
            key = self.parent[key]
            if key == gone:
                return True
        return False

    def _rebalance(self) -> None:
        for rank in range(len(self.sizes)):
            self._trim(rank)
            while rank and self._num_blocks(rank) > self.sizes[rank] and self.order[rank]:
                self._evict(rank)

    def _to_newest(self, rank: int, key: BlockKey) -> None:
        if key in self.order[rank]:
            self.order[rank].remove(key)
        self.order[rank].append(key)

    def _store_through(self, key: BlockKey) -> None:
        if self.mode is WriteMode.WRITE_BACK or not self._is_hit_enough(key):
            return
        for rank in range(1, len(self.sizes)):
            if self.sizes[rank] and key not in self.pinned[rank]:
                tenant = self._tenant(key)
                while self._is_beyond(rank, tenant, 1) and (own := self._own(rank, tenant)):
                    self._evict(rank, own)
                if self._is_beyond(rank, tenant, 1):
                    continue
                while self._num_blocks(rank) >= self.sizes[rank] and self.order[rank]:
                    self._evict(rank)
                if self._num_blocks(rank) < self.sizes[rank]:
                    self.pinned[rank].add(key)
        self._rebalance()

    def _num_blocks(self, rank: int) -> int:
        return len(self.order[rank]) + len(self.pinned[rank])
