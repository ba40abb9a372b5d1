"""Decides what each step computes: who decodes, whose prompt goes on, who is admitted, who has to give blocks back.

Knows nothing about tensors, threads or text. Order is first come, first served: by arrival, also after a preemption.
"""

import logging
from bisect import insort
from collections.abc import Callable
from collections.abc import Sequence as Seq
from dataclasses import dataclass, field

from engine.engine_config import EngineConfig
from engine.sequence import Sequence
from engine.stats import EngineStats
from tiers import CapacityError, LeaseState, TieredCache

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Tokens [start, start + length) of a sequence, to be computed now; `is_last` when a token is to be sampled."""

    sequence: Sequence
    start: int
    length: int
    block_ids: Seq[int]
    is_last: bool

    @property
    def is_prefill(self) -> bool:
        """Tokens that were there before: a prompt's, or of what was generated until a preemption."""
        return self.start < self.sequence.num_prompt or self.length > 1


@dataclass(slots=True)
class Plan:
    """One step in the making. `failed` are sequences that ended here, each with a sentence that says why.

    `is_short`: a running sequence lacks blocks, so nobody is admitted, who would take or hold those it waits for.
    `seconds` is what the model took.
    """

    budget: int
    chunks: list[Chunk] = field(default_factory=list)
    failed: list[tuple[Sequence, str]] = field(default_factory=list)
    is_short: bool = False
    has_moved: bool = False
    seconds: float = 0.0

    @property
    def num_tokens(self) -> int:
        return sum(chunk.length for chunk in self.chunks)

    @property
    def num_prefill(self) -> int:
        return sum(chunk.length for chunk in self.chunks if chunk.is_prefill)

    def add(self, sequence: Sequence) -> None:
        length = min(self.budget, sequence.num_remaining)
        if length == 0:
            return
        assert sequence.lease is not None
        is_last = length == sequence.num_remaining
        self.chunks.append(Chunk(sequence, sequence.num_computed, length, sequence.lease.block_ids, is_last))
        self.budget -= length


def _arrival(sequence: Sequence) -> int:
    return sequence.arrival


class Scheduler:
    """Waiting, loading (lease taken, copies to gpu under way) and running sequences, each list in order of arrival."""

    def __init__(
        self, config: EngineConfig, cache: TieredCache, stats: EngineStats, clock: Callable[[], float]
    ) -> None:
        self._config = config
        self._cache = cache
        self._stats = stats
        self._clock = clock
        self._arrivals = 0
        self.waiting: list[Sequence] = []
        self.loading: list[Sequence] = []
        self.running: list[Sequence] = []

    def add(self, sequence: Sequence) -> None:
        self._arrivals += 1
        sequence.arrival = self._arrivals
        self.waiting.append(sequence)

    @property
    def sequences(self) -> list[Sequence]:
        return [*self.running, *self.loading, *self.waiting]

    def schedule(self) -> Plan:
        """Chunks for one step within the token budget. Changes leases and counts admissions."""
        plan = Plan(self._config.max_num_batched_tokens)
        self._decode(plan)
        self._prefill(plan)
        self._start_loaded(plan)
        if not plan.is_short:
            self._admit_waiting(plan)
        return plan

    def computed(self, chunk: Chunk) -> None:
        """The model has run the chunk: what is full now becomes cached."""
        sequence = chunk.sequence
        sequence.num_computed = chunk.start + chunk.length
        assert sequence.lease is not None
        first, keys, parent = sequence.filled_blocks()
        if keys:
            self._cache.register(sequence.lease, first, keys, parent)
            self._stats.filled(keys)
            sequence.num_registered = first + len(keys)

    def remove(self, sequence: Sequence) -> None:
        """Take a sequence out, wherever it is, and give its blocks back."""
        for group in (self.waiting, self.loading, self.running):
            if sequence in group:
                group.remove(sequence)
        if sequence.lease is not None:
            self._release(sequence)

    # -- the parts of a step, in order -------------------------------------------------------------------------------
    def _decode(self, plan: Plan) -> None:
        """Oldest first, so that a victim, always younger, has not been planned yet."""
        for sequence in list(self.running):
            if plan.budget and sequence.num_remaining == 1 and sequence.lease and self._has_room(sequence, plan):
                plan.add(sequence)

    def _prefill(self, plan: Plan) -> None:
        for sequence in self.running:
            if sequence.num_remaining > 1:
                plan.add(sequence)

    def _start_loaded(self, plan: Plan) -> None:
        for sequence in list(self.loading):
            assert sequence.lease is not None
            if sequence.lease.state is LeaseState.FAILED:
                self._send_back(sequence, self.loading)
                plan.has_moved = True
            elif sequence.lease.state is LeaseState.READY and plan.budget:
                self.loading.remove(sequence)
                self._start(sequence, plan)

    def _admit_waiting(self, plan: Plan) -> None:
        """A sequence that waits for its copies lets others pass; one that waits for slots does not."""
        while self.waiting and plan.budget and len(self.running) + len(self.loading) < self._config.max_num_seqs:
            sequence = self.waiting[0]
            if not self._acquire(sequence, plan):
                return
            if sequence.lease is None:
                continue
            self.waiting.pop(0)
            if sequence.lease.state is LeaseState.READY:
                self._start(sequence, plan)
            else:
                insort(self.loading, sequence, key=_arrival)

    # -- leases ------------------------------------------------------------------------------------------------------
    def _acquire(self, sequence: Sequence, plan: Plan) -> bool:
        """False: no slots yet. A sequence for which there can be none fails and makes way."""
        try:
            sequence.lease = self._cache.acquire(
                sequence.hittable_keys(), sequence.blocks_now, sequence.origins, sequence.request.tenant
            )
        except CapacityError as error:
            self.fail(sequence, f"The request no longer fits the gpu tier: {error}", plan)
            return True
        return sequence.lease is not None

    def _start(self, sequence: Sequence, plan: Plan) -> None:
        insort(self.running, sequence, key=_arrival)
        if sequence.admit(self._clock()):
            self._stats.admitted(sequence)
            self._stats.asked(sequence)
            self._stats.begun(sequence)
        plan.add(sequence)

    def _has_room(self, sequence: Sequence, plan: Plan) -> bool:
        """Blocks for all tokens of a running sequence, taken from the youngest if there is no other way.

        False: not in this step, either because evictions are under way or because it was the youngest itself.
        """
        assert sequence.lease is not None
        missing = sequence.blocks_now - len(sequence.lease.block_ids)
        while missing > 0 and not self._cache.extend(sequence.lease, missing):
            plan.is_short = True
            if self._cache.num_obtainable >= missing:
                return False
            victim = max((*self.running, *self.loading), key=_arrival)
            self._preempt(victim, plan)
            if victim is sequence:
                return False
        return True

    def _preempt(self, victim: Sequence, plan: Plan) -> None:
        if victim in self.loading:
            self._send_back(victim, self.loading)
            return
        victim.num_preemptions += 1
        self._stats.preempted()
        log.info("request %s preempted with %d tokens", victim.request_id, len(victim.token_ids))
        self._send_back(victim, self.running)

    def _send_back(self, sequence: Sequence, group: list[Sequence]) -> None:
        group.remove(sequence)
        self._release(sequence)
        insort(self.waiting, sequence, key=_arrival)

    def _release(self, sequence: Sequence) -> None:
        self._stats.given_back(sequence)
        self._cache.release(sequence.give_back())

    def fail(self, sequence: Sequence, sentence: str, plan: Plan) -> None:
        self.remove(sequence)
        plan.failed.append((sequence, sentence))

    def check(self) -> None:
        for group in (self.waiting, self.loading, self.running):
            arrivals = [sequence.arrival for sequence in group]
            assert arrivals == sorted(set(arrivals)), "a list of sequences is not in order of arrival"
        everyone = self.sequences
        assert len({id(sequence) for sequence in everyone}) == len(everyone), "a sequence is in two lists"
        assert all(sequence.lease is None for sequence in self.waiting), "a waiting sequence holds a lease"
        assert all(sequence.lease for sequence in (*self.running, *self.loading)), "a lease is missing"
        assert len(self.running) + len(self.loading) <= self._config.max_num_seqs, "too many sequences were admitted"
        for sequence in self.running:
            assert sequence.lease is not None
            num_blocks = len(sequence.lease.block_ids)
            assert sequence.num_computed <= num_blocks * sequence.block_size, "more tokens computed than blocks hold"
            assert sequence.num_remaining >= 1, "a running sequence has nothing left to compute"
