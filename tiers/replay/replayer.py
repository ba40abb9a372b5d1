"""Serves a trace's requests one after the other with the real tiers' books, policies and ways, without any bytes.

The answer for each request is where its blocks were found; what moved and left is in the tiers' own figures. Knows
nothing about files, time or who asks. With the same requests it does the same, to the block.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Protocol, cast

import numpy as np

from tiers.ascent import Ascent
from tiers.assembly import Parts
from tiers.audit import audit
from tiers.books import hollow
from tiers.books.books import Books
from tiers.books.compiled import Ints32, Ints64
from tiers.books.hollow_ways import BEYOND, LOADED, NUM_MOVED, ORPHANED, OUT, STORED
from tiers.books.tenants import MAX_NAME_BYTES, NOBODY
from tiers.config import CacheConfig, SlabSpec, TierConfig
from tiers.follower import Nobody
from tiers.gpu import Gpu
from tiers.host import Host
from tiers.ladder import Ladder
from tiers.level import Level
from tiers.names import TIERS, Tier
from tiers.pool import BlockPool
from tiers.replay.config import ReplayConfig, ReplayTier
from tiers.replay.names import ROOT, chained
from tiers.replay.reuse import NoReplayReuse, ReplayReuse
from tiers.stats import CacheStats, absent
from tiers.transfers import Transfers
from tiers.whatif.shards_buckets import ReuseCounts

_BLOCK = SlabSpec(1, "uint8", (1,))  # so that sizes in bytes are sizes in blocks


class Asked(Protocol):
    """What is read of a request: its prompt's blocks, what each holds, what its answer fills, and whose it is."""

    @property
    def block_ids(self) -> Sequence[Hashable]: ...
    @property
    def block_tokens(self) -> Sequence[int]: ...
    @property
    def num_prompt_tokens(self) -> int: ...
    @property
    def output_block_ids(self) -> Sequence[Hashable]: ...
    @property
    def tenant(self) -> str: ...


@dataclass(frozen=True)
class Served:
    """`prompt_tokens == sum(hit_tokens) + computed_tokens`, by the tiers that served any.

    What does not fit into gpu reads what is there and leaves nothing behind, as `manage.py whatif --policy` has it.
    """

    prompt_tokens: int
    hit_tokens: Mapping[Tier, int]
    computed_tokens: int
    fits: bool


class Replayer:
    """Tiers that begin empty."""

    def __init__(self, config: ReplayConfig, reuse: ReplayReuse | NoReplayReuse | None = None) -> None:
        """`reuse` is a new curve where it is not given."""
        self.config = config
        self.reuse = reuse or ReplayReuse(config.block_tokens)
        self._books = Books(len(config.tiers))
        self._levels = [Level(self._books, rank, _tier(tier), 1) for rank, tier in enumerate(config.tiers)]
        self._gpu = Gpu(self._levels[0], cast(BlockPool, _NoPool()))
        self._gpu.resize(config.tiers[0].num_blocks)
        self._moved = np.zeros((NUM_MOVED, len(config.tiers)), np.int64)

    def serve(self, request: Asked, part: str = "") -> Served:
        """The next request, from start to end; it belongs to a `part` of the traffic in the reuse curve only."""
        keys = chained([*request.block_ids, *request.output_block_ids])
        return self.serve_keys(keys, request.block_tokens, request.num_prompt_tokens, part, request.tenant)

    def serve_keys(
        self, keys: Ints32, block_tokens: Sequence[int], num_prompt_tokens: int, part: str = "", tenant: str = NOBODY
    ) -> Served:
        """The same by keys, as `chained` names are; the first of them, which have `block_tokens`, are asked for."""
        self.reuse.ask(keys, block_tokens, num_prompt_tokens, part)
        num_prompt = len(block_tokens)
        fits = len(keys) <= self.config.tiers[0].num_blocks
        tiers = np.empty(num_prompt, np.int64)
        asked = keys[:num_prompt]
        num_found = self._served(keys, num_prompt, tiers, tenant) if fits else self._found(asked, tiers)
        hits = self._by_tier(tiers[:num_found], block_tokens)
        return Served(num_prompt_tokens, hits, num_prompt_tokens - sum(hits.values()), fits)

    def _served(self, keys: Ints32, num_prompt: int, tiers: Ints64, tenant: str) -> int:
        num_blocks, num_levels = len(keys), len(self._levels)
        if not num_blocks:
            return 0
        # Each block may push one out of every tier, each of which remembers what left in up to two lists.
        moves = (num_blocks + 1) * num_levels
        self._books.reserve(nodes=num_blocks + 1, copies=2 * moves, memories=4 * moves)
        slots = self._gpu.slots
        num_found: int = hollow.serve(
            *self._books.tables,
            slots.words,
            slots.counts,
            keys,
            ROOT,
            num_prompt,
            tiers,
            np.empty(num_blocks, np.int64),
            self._moved,
            self._books.tenants.number(_short(tenant)),
        )
        return num_found

    def _found(self, keys: Ints32, tiers: Ints64) -> int:
        num_found: int = hollow.find_prefix(*self._books.tables, keys, tiers)
        return num_found

    @staticmethod
    def _by_tier(tiers: Ints64, tokens: Sequence[int]) -> dict[Tier, int]:
        sums = [0] * len(TIERS)
        for place, num_tokens in zip(tiers.tolist(), tokens, strict=False):
            sums[place] += num_tokens
        return {tier: num_tokens for tier, num_tokens in zip(TIERS, sums, strict=True) if num_tokens}

    # -- figures -----------------------------------------------------------------------------------------------------
    def stats(self) -> CacheStats:
        """Of all tiers, as a cache tells them; a block counts as one byte."""
        tiers = {tier: absent(tier) for tier in TIERS}
        for rank, level in enumerate(self._levels):
            told = self._moved[:, rank].tolist()
            level.evicted |= {"capacity": told[OUT], "orphaned": told[ORPHANED], "quota": told[BEYOND]}
            level.num_stored, level.num_loaded = told[STORED], told[LOADED]
            used = level.num_blocks if rank else self._gpu.slots.num_in_use
            tiers[level.tier] = level.stats(self.config.block_tokens, used)
        return CacheStats(tiers)

    def reuse_counts(self) -> ReuseCounts:
        """Prompt tokens by the capacity of one LRU stack that would have served them."""
        return self.reuse.counts()

    def reuse_parts(self) -> dict[str, ReuseCounts]:
        """The same of each part of the traffic, at fewer capacities."""
        return self.reuse.parts()

    def check(self) -> None:
        """Raises AssertionError with a sentence if any books disagree. Walks everything."""
        audit(self._parts(), [])
        self.reuse.check()
        for tier in self.stats().tiers.values():
            tier.check()

    def _parts(self) -> Parts:
        """As the audit reads a cache."""
        tiers = tuple(_tier(tier) for tier in self.config.tiers)
        return Parts(
            config=CacheConfig(1, _BLOCK, "replay", tiers, 0),
            levels=self._levels,
            books=self._books,
            gpu=self._gpu,
            host=Host(_BLOCK, 0, 0),
            disk=None,
            remote=None,
            transfers=Transfers(0, lambda: None, has_files=False, has_server=False),
            ladder=cast(Ladder, None),
            ascent=cast(Ascent, None),
            follower=Nobody(),
        )


class _NoPool:
    """Slots without anything in them."""

    num_blocks = 0
    is_host_memory = True

    def resize(self, num_blocks: int) -> None:
        self.num_blocks = num_blocks


def _tier(tier: ReplayTier) -> TierConfig:
    """The folder and the server that a configuration has to name are never opened."""
    return TierConfig(
        tier.tier,
        tier.num_blocks,
        tier.write_mode,
        tier.policy,
        path=Path() if tier.tier is Tier.DISK else None,
        url="unix://" if tier.tier is Tier.REMOTE else None,
        store_after_hits=tier.store_after_hits,
        tenant_quota=tier.tenant_quota,
    )


def _short(tenant: str) -> str:
    """Traces call tenants what they like."""
    return tenant if len(tenant.encode()) <= MAX_NAME_BYTES else blake2b(tenant.encode(), digest_size=16).hexdigest()
