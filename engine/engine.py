"""The engine: requests in, token events out, by one thread that steps. Public methods may be called from any thread.

Knows nothing about text, HTTP or Celery, and of tensors only that the runner turns chunks into tokens.
"""

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Unpack

from engine.engine_config import EngineConfig
from engine.inbox import ClosedError, Inbox
from engine.prefill_cost import PrefillCost
from engine.recording import Recording
from engine.request import BusyError, Event, FinishedEvent, FinishReason, GenerationRequest, RequestError, TokenEvent
from engine.reuse import LiveReuse, Reuse
from engine.room import Room
from engine.runner import Runner
from engine.scheduler import Plan, Scheduler
from engine.sequence import Sequence
from engine.stats import EngineSnapshot, EngineStats
from engine.tenants import Tenants
from tiers import Tier, TierChanges, TieredCache, root_key
from tiers.whatif.shards import Sample
from tiers.whatif.shards_curve import ReuseCurve

log = logging.getLogger(__name__)

# The loop is woken by arrivals, commands and finished copies; the nap only bounds what a lost wake-up could cost.
NAP_SECONDS = 1.0
# While stopping nobody rings when the time to drain is over.
STOPPING_NAP_SECONDS = 0.02
STOPPED = "The engine was stopped before the request was finished."


class Engine:
    """Continuous batching over a tiered prefix cache. `step()` may be called by hand where `start()` was not."""

    def __init__(
        self,
        config: EngineConfig,
        runner: Runner,
        cache: TieredCache,
        *,
        eos_ids: frozenset[int] = frozenset(),
        clock: Callable[[], float] = time.monotonic,
        reuse: Reuse | None = None,
        recording: Recording | None = None,
    ) -> None:
        """`reuse` is a new curve where it is not given, `recording` none."""
        self.config = config
        self._runner = runner
        self._cache = cache
        self._eos_ids = eos_ids
        self._clock = clock
        reuse = reuse or LiveReuse(ReuseCurve(config.block_size))
        self._stats = EngineStats(Tenants(config.tenants, config.max_tenants), reuse, recording)
        self._scheduler = Scheduler(config, cache, self._stats, clock)
        self._inbox = Inbox()
        self._unfinished: dict[str, Sequence] = {}
        self._submitting = threading.Lock()
        self._state = threading.RLock()
        self._events: list[tuple[Sequence, Event]] = []
        self._thread: threading.Thread | None = None
        self._stop_at: float | None = None
        self._room = Room(config, cache.config.slab.num_bytes)
        self._prefill = PrefillCost()
        cache.on_transfer_done = self._inbox.ring
        cache.prefill_seconds = self._prefill.seconds

    # -- from any thread ---------------------------------------------------------------------------------------------
    @property
    def max_request_tokens(self) -> int:
        """What a prompt and its answer may have together now: the model's length, or what the gpu tier can hold."""
        return self._room.max_request_tokens

    @property
    def num_unfinished(self) -> int:
        return len(self._unfinished)

    def submit(self, request: GenerationRequest, on_event: Callable[[Event], None]) -> None:
        """Queue a request. `on_event` is called on the stepping thread, last with a FinishedEvent; it must not block.

        Raises RequestError if the request can never run, BusyError if it cannot be taken now.
        """
        self._room.validate(request)
        sequence = Sequence(
            request,
            root=self._root(request.salt),
            block_size=self.config.block_size,
            max_model_len=self.config.max_model_len,
            on_event=on_event,
            now=self._clock(),
        )
        with self._submitting:
            self._accept(sequence)

    def abort(self, request_id: str, finish_reason: FinishReason = "abort") -> None:
        """End a request; no effect if it is not there (any more). "stop" is for a stop string found in its text."""
        self._put_quietly(partial(self._abort, request_id, finish_reason))

    def resize(self, tier: Tier, capacity_bytes: int) -> "Future[None]":
        """Applied between two steps. The future raises RefusedError, and the old size stays, if it cannot be."""
        return self._inbox.ask(partial(self._resize, tier, capacity_bytes))

    def configure(self, tier: Tier, **changes: Unpack[TierChanges]) -> "Future[None]":
        return self._inbox.ask(partial(self._cache.configure, tier, **changes))

    def clear(self, tier: Tier) -> "Future[int]":
        """Drop what the tier holds and nobody reads; the future gives the number of blocks dropped."""
        return self._inbox.ask(partial(self._cache.clear, tier))

    def snapshot(self) -> EngineSnapshot:
        """Counters and occupancy at one moment; never waits for the model."""
        with self._state:
            return EngineSnapshot(
                counters=self._stats.counters(),
                cache=self._cache.stats(),
                num_running=len(self._scheduler.running),
                num_waiting=len(self._scheduler.waiting) + len(self._scheduler.loading),
                gpu_floor=self._room.floor(self._scheduler.sequences),
            )

    def reuse_sample(self) -> Sample | None:
        """What the reuse curve knows of the order of use; None where it is switched off. Never waits for the model."""
        with self._state:
            return self._stats.reuse.sample()

    def largest_size(self, tier: Tier) -> tuple[int, str]:
        """The most bytes that `resize` would accept for the tier now, and what bounds it."""
        with self._state:
            return self._cache.max_bytes(tier), self._cache.max_reason(tier)

    def check(self) -> None:
        """Raises AssertionError with a sentence if any bookkeeping is off."""
        with self._state:
            self._scheduler.check()
            self._cache.check()
            self._stats.counters().check()
            known = {sequence.request_id for sequence in self._scheduler.sequences}
            assert known <= self._unfinished.keys(), "a scheduled request is not among the unfinished ones"

    def start(self) -> None:
        self._thread = threading.Thread(target=self._loop, name=f"engine-{self.config.name}", daemon=True)
        self._thread.start()

    def stop(self, drain_seconds: float = 0.0, flush_seconds: float = 0.0) -> None:
        """Take nothing new, let requests finish for so long, end the others with an error, write the tiers down.

        `flush_seconds` bounds the writing of gpu and cpu content to disk and remote. Blocks until the thread has ended.
        """
        with self._submitting:
            self._stop_at = self._clock() + drain_seconds
        self._inbox.ring()
        if self._thread is None:
            self._end()
        else:
            self._thread.join()
        self._cache.flush(self._clock() + flush_seconds)
        self._cache.close()

    # -- the stepping thread -----------------------------------------------------------------------------------------
    def step(self) -> bool:
        """One turn of the engine; False if there was nothing to do, so that the caller may sleep."""
        with self._state:
            has_moved = self._inbox.take() | self._poll()
            plan = self._schedule()
        tokens = self._run(plan)
        with self._state:
            self._postprocess(plan, tokens)
        self._deliver()
        return has_moved or plan.has_moved or bool(plan.chunks)

    def _loop(self) -> None:
        while not self._is_over():
            self._inbox.listen()
            if not self._turn():
                self._inbox.sleep(NAP_SECONDS if self._stop_at is None else STOPPING_NAP_SECONDS)
        self._end()

    def _turn(self) -> bool:
        """A step whose failure, whatever it is, ends requests but never the loop."""
        try:
            return self.step()
        except Exception as error:
            with self._state:
                self._fail(list(self._unfinished.values()), "go through", error)
            self._deliver()
            return False

    def _is_over(self) -> bool:
        return self._stop_at is not None and (not self._unfinished or self._clock() >= self._stop_at)

    def _end(self) -> None:
        self._inbox.close()
        with self._state:
            self._inbox.take()
            for sequence in list(self._unfinished.values()):
                self._finish(sequence, "error", STOPPED)
        self._deliver()

    def _poll(self) -> bool:
        try:
            return self._cache.poll()
        except Exception as error:
            self._fail_affected("apply finished copies", error)
            return False

    def _schedule(self) -> Plan:
        try:
            plan = self._scheduler.schedule()
        except Exception as error:
            self._fail_affected("schedule", error)
            return Plan(0, has_moved=bool(self._events))
        for sequence, sentence in plan.failed:
            self._finish(sequence, "error", sentence)
        return plan

    def _run(self, plan: Plan) -> list[int]:
        """A token for each chunk that is a sequence's last, in order."""
        if not plan.chunks:
            return []
        began = self._clock()
        try:
            tokens = self._runner.run(plan.chunks)
        except Exception as error:
            with self._state:
                self._fail([chunk.sequence for chunk in plan.chunks], "compute", error)
            plan.chunks.clear()
            plan.has_moved = True
            return []
        plan.seconds = self._clock() - began
        return tokens

    def _postprocess(self, plan: Plan, tokens: list[int]) -> None:
        now, token_of = self._clock(), iter(tokens)
        self._stats.ran(plan.num_prefill, plan.num_tokens, plan.seconds)
        self._prefill.ran(plan)
        for chunk in plan.chunks:
            try:
                self._scheduler.computed(chunk)
                if chunk.is_last:
                    self._append(chunk.sequence, next(token_of), now)
            except Exception as error:
                self._fail([chunk.sequence], "book", error)

    def _append(self, sequence: Sequence, token_id: int, now: float) -> None:
        self._stats.token(sequence, now)
        finish_reason = sequence.append(token_id, self._eos_ids, now)
        self._events.append((sequence, TokenEvent((token_id,))))
        if finish_reason is not None:
            self._finish(sequence, finish_reason)

    def _finish(self, sequence: Sequence, reason: FinishReason, error: str | None = None) -> None:
        del self._unfinished[sequence.request_id]
        self._stats.finished(sequence, reason, self._clock())
        self._stats.ended(sequence)
        self._events.append((sequence, FinishedEvent(reason, error, sequence.usage())))
        try:
            self._scheduler.remove(sequence)
        except Exception:
            log.exception("request %s ended, but its blocks could not be given back", sequence.request_id)

    def _deliver(self) -> None:
        events, self._events = self._events, []
        for sequence, event in events:
            try:
                sequence.on_event(event)
            except Exception:
                log.exception("request %s: its listener failed; the request is aborted", sequence.request_id)
                self.abort(sequence.request_id)

    def _fail(self, sequences: list[Sequence], doing: str, error: Exception) -> None:
        ids = [sequence.request_id for sequence in sequences]
        log.error("could not %s a step with requests %s", doing, ids, exc_info=error)
        for sequence in sequences:
            if sequence.request_id in self._unfinished:
                sentence = f"The engine could not {doing} a step of this request: {type(error).__name__}: {error}"
                self._finish(sequence, "error", sentence)

    def _fail_affected(self, doing: str, error: Exception) -> None:
        """Those whose blocks the fault may have touched; where there are none, the one that was to be next."""
        scheduler = self._scheduler
        self._fail([*scheduler.running, *scheduler.loading] or scheduler.waiting[:1], doing, error)

    # -- what other threads asked for, on the stepping thread --------------------------------------------------------
    def _arrive(self, sequence: Sequence) -> None:
        self._scheduler.add(sequence)
        if (sentence := self._room.why_not(sequence)) is not None:
            self._finish(sequence, "error", sentence)

    def _abort(self, request_id: str, finish_reason: FinishReason) -> None:
        if (sequence := self._unfinished.get(request_id)) is not None:
            self._finish(sequence, finish_reason)

    def _resize(self, tier: Tier, capacity_bytes: int) -> None:
        if tier is not Tier.GPU:
            self._cache.resize(tier, capacity_bytes)
            return
        self._room.refuse_below_floor(capacity_bytes, self._scheduler.sequences)
        self._cache.resize(tier, capacity_bytes)
        self._room.resized(capacity_bytes)

    # -- details -----------------------------------------------------------------------------------------------------
    def _root(self, salt: str) -> bytes:
        cache = self._cache.config
        return root_key(fingerprint=cache.fingerprint, salt=salt, block_size=cache.block_size, dtype=cache.slab.dtype)

    def _accept(self, sequence: Sequence) -> None:
        if self._stop_at is not None:
            raise BusyError("The engine is stopping and takes no more requests.")
        if sequence.request_id in self._unfinished:
            raise RequestError(f"There is an unfinished request {sequence.request_id!r} already; ids must differ.")
        if len(self._unfinished) >= self.config.max_num_waiting + self.config.max_num_seqs:
            raise BusyError(f"{len(self._unfinished):,} requests are unfinished already; send this one again later.")
        self._unfinished[sequence.request_id] = sequence
        self._inbox.put(partial(self._arrive, sequence))

    def _put_quietly(self, call: Callable[[], None]) -> None:
        try:
            self._inbox.put(call)
        except ClosedError:
            log.debug("ignored after the engine has stopped")
