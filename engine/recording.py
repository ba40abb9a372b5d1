"""What is recorded of a request's life, in the order of admission. Off is an object, too.

Keys of blocks, counts and a tenant's name; never text or token ids. Knows nothing about files.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from engine.sequence import Sequence
from tiers import BlockKey

# Requests that ended before one that was admitted earlier wait for it: so many keys of theirs are about 30 MB.
MAX_HELD_KEYS = 500_000


@dataclass(frozen=True, slots=True)
class TraceRecord:
    """One request; `at` is its admission in Unix time. `filled` are keys that follow the ones that were asked for."""

    at: float
    tenant: str
    asked: list[BlockKey]
    filled: list[BlockKey]
    num_prompt_tokens: int
    num_output_tokens: int

    @property
    def num_keys(self) -> int:
        return len(self.asked) + len(self.filled)


@dataclass(frozen=True)
class RecordCounts:
    """Requests since the start; `is_on` False where nothing is recorded at all."""

    is_on: bool = False
    recorded: int = 0
    dropped: int = 0


class Recorder(Protocol):
    """Takes records from the stepping thread; never blocks, and drops what is too much."""

    def put(self, record: TraceRecord) -> None: ...
    def counts(self) -> RecordCounts: ...


class Recording(Protocol):
    """Called on the stepping thread."""

    def admitted(self, sequence: Sequence) -> None:
        """Called once a request, when its prompt is counted."""
        ...

    def ended(self, sequence: Sequence) -> None:
        """Called while it still has its blocks; also for a request that was never admitted."""
        ...

    def counts(self) -> RecordCounts: ...


class NoRecording:
    """Switched off."""

    def admitted(self, sequence: Sequence) -> None:
        pass

    def ended(self, sequence: Sequence) -> None:
        pass

    def counts(self) -> RecordCounts:
        return RecordCounts()


class LiveRecording:
    """Hands each request that has ended to the recorder, after all that were admitted before it."""

    def __init__(self, recorder: Recorder, wall_clock: Callable[[], float]) -> None:
        self._recorder = recorder
        self._wall_clock = wall_clock
        # By arrival, in the order of admission; None while they run.
        self._records: dict[int, TraceRecord | None] = {}
        self._admitted_at: dict[int, float] = {}
        self._num_held_keys = 0

    def admitted(self, sequence: Sequence) -> None:
        self._records[sequence.arrival] = None
        self._admitted_at[sequence.arrival] = self._wall_clock()

    def ended(self, sequence: Sequence) -> None:
        at = self._admitted_at.pop(sequence.arrival, None)
        if at is None:
            return
        try:
            record = _record(at, sequence)
        except Exception:
            del self._records[sequence.arrival]  # nobody is to wait for it
            raise
        self._records[sequence.arrival] = record
        self._num_held_keys += record.num_keys
        self._hand_on()

    def counts(self) -> RecordCounts:
        return self._recorder.counts()

    def _hand_on(self) -> None:
        """Up to the first that still runs; past it where too much waits, so that it comes late."""
        while (arrival := self._next()) is not None:
            record = self._records.pop(arrival)
            assert record is not None
            self._num_held_keys -= record.num_keys
            self._recorder.put(record)

    def _next(self) -> int | None:
        if self._num_held_keys > MAX_HELD_KEYS:
            return next((arrival for arrival, record in self._records.items() if record is not None), None)
        arrival = next(iter(self._records), None)
        return arrival if arrival is not None and self._records[arrival] is not None else None

    def check(self) -> None:
        held = [record for record in self._records.values() if record is not None]
        assert self._num_held_keys == sum(record.num_keys for record in held), "the keys that are held are not counted"
        running = {arrival for arrival, record in self._records.items() if record is None}
        assert running == self._admitted_at.keys(), "a request that runs is held, or the other way round"


def _record(at: float, sequence: Sequence) -> TraceRecord:
    num_asked = (sequence.num_prompt - 1) // sequence.block_size
    return TraceRecord(
        at,
        sequence.request.tenant,
        sequence.keys[:num_asked],
        sequence.keys[num_asked : sequence.num_registered],
        sequence.num_prompt,
        sequence.num_generated,
    )
