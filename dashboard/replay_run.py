"""One replay in this process's memory: its trace, read as far as it is, and the tiers that the requests go through.

One of two modules of the dashboard that ask the tiers to replay (policy_run.py is the other); only workers and the
command load it. What a run was is gone with its process: it is made again by going through the same requests from the
start. Books nothing.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from django.conf import settings

from dashboard.models import Replay
from dashboard.replay_booking import Booked, Booking, Look
from dashboard.replay_sizes import ReplaySize
from dashboard.trace_folder import folder, mark_of, trace_path
from dashboard.trace_texts import load_tokenizer
from tiers.names import Policy, Tier, WriteMode
from tiers.replay.config import ReplayConfig, ReplayTier
from tiers.replay.replayer import Replayer
from tiers.traces import CountFaults, Trace, TraceRequest, open_trace

# Requests between two moments at which it may be booked; the same ones however often it is begun. Of long ones it is
# fewer, so that a portion takes seconds: a tokenizer reads half a megabyte of text a second.
PORTION = 200
PORTION_COST = 200_000  # blocks, and tokens of texts
# Of every tier, each ten seconds of the trace: where requests lie days apart, a pause is divided.
PORTION_READINGS = 360
MAX_SECONDS = 20 * 366 * 86_400

Every = Callable[[int], int]
Alive = Callable[[], object]


class ReplayError(ValueError):
    """It cannot be replayed; the message is a sentence for a person."""


@dataclass(frozen=True)
class Timed:
    """A request and its second of the trace, which never goes back."""

    second: int
    request: TraceRequest


class _Reading:
    """A trace that is gone through once, as far as it was when its extent was read."""

    def __init__(self, replay: Replay, while_opening: Alive) -> None:
        path = trace_path(replay.file_name)
        if mark_of(path) != replay.file_mark:
            raise ReplayError(f"{replay.file_name} has changed since this replay was made; begin a new one.")
        self.faults = CountFaults()
        self._trace: Trace = open_trace(
            path,
            kind=replay.form,
            load_tokenizer=load_tokenizer,
            block_tokens=settings.BLOCK_SIZE,
            faults=self.faults,
            scratch=folder(),
            while_opening=while_opening,
        )
        self.has_times = self._trace.has_times
        self.starts_at = self._trace.starts_at
        self._timed = islice(self._all(), replay.num_requests)

    def next_portion(self) -> list[Timed]:
        """Empty at the end."""
        portion: list[Timed] = []
        cost = 0
        for timed in islice(self._timed, PORTION):
            portion.append(timed)
            cost += _cost(timed.request)
            if cost >= PORTION_COST:
                break
        return portion

    @property
    def share(self) -> float:
        return self._trace.share_read

    def close(self) -> None:
        self._trace.close()

    def _all(self) -> Iterator[Timed]:
        """Without times, a request a second."""
        second = 0
        for number, request in enumerate(self._trace):
            second = max(second, int(request.at_seconds) if self.has_times else number)
            if second > MAX_SECONDS:
                raise ReplayError(f"Request {number + 1:,} comes more than 20 years after the first.")
            yield Timed(second, request)


def _cost(request: TraceRequest) -> int:
    num_text_tokens = 0 if request.prompt is None else request.num_prompt_tokens + request.num_output_tokens
    return len(request.block_ids) + len(request.output_block_ids) + num_text_tokens


class Scan:
    """The first way through a trace: how long it is, what a block holds, which lines are wrong. Books nothing."""

    def __init__(self, replay: Replay, while_opening: Alive = lambda: None) -> None:
        self._reading = _Reading(replay, while_opening)
        self._replay = replay
        self._num_requests = self._seconds = self._block_tokens = 0
        self._has_full_block = False
        self.is_over = False

    @property
    def share(self) -> float:
        return self._reading.share

    @property
    def faults(self) -> CountFaults:
        return self._reading.faults

    @property
    def starts_at(self) -> float | None:
        """Where the trace tells it."""
        return self._reading.starts_at

    def step(self) -> None:
        """Raises ValueError for tiers that cannot be, as soon as a whole block's tokens are known."""
        portion = self._reading.next_portion()
        self.is_over = not portion
        self._num_requests += len(portion)
        for timed in portion:
            self._seconds = timed.second
            self._block_tokens = max(self._block_tokens, *timed.request.block_tokens, 0)
            self._has_full_block = self._has_full_block or len(timed.request.block_tokens) > 1
        if self._has_full_block:  # all but a request's last one are
            self._blocks()

    def extent(self) -> dict[str, Any]:
        """As the row has it. Raises ReplayError where there is nothing, ValueError for tiers that cannot be."""
        if not self._num_requests:
            raise ReplayError(f"{self._replay.file_name} has no requests that can be read.")
        return {
            "requests": self._num_requests,
            "seconds": self._seconds,
            "block_tokens": max(self._block_tokens, 1),
            "blocks": self._blocks(),
            "has_times": self._reading.has_times,
        }

    def _blocks(self) -> dict[str, int]:
        block_tokens = max(self._block_tokens, 1)
        sizes = {
            told["tier"]: ReplaySize(told["amount"], told["unit"]).blocks(block_tokens, self._replay.bytes_a_token)
            for told in self._replay.tiers
        }
        config_of(self._replay.tiers, sizes, block_tokens)
        return sizes

    def close(self) -> None:
        self._reading.close()


class Run:
    """From the first request on. `num_done` of them went through the tiers."""

    def __init__(self, replay: Replay, every: Every, while_opening: Alive = lambda: None) -> None:
        extent = replay.extent
        assert replay.starts_at is not None
        config = config_of(replay.tiers, extent["blocks"], extent["block_tokens"])
        self.num_done = 0
        self.is_over = False
        self._reading = _Reading(replay, while_opening)
        self._starts_at = replay.starts_at
        self._portion: deque[Timed] = deque()
        self._replayer = Replayer(config)
        self.booking = Booking(
            replay.name,
            replay.starts_at,
            tiers=tuple(str(tier.tier) for tier in config.tiers),
            block_tokens=extent["block_tokens"],
            bytes_a_token=replay.bytes_a_token,
            every=every,
            look=self._look,
        )

    @property
    def position(self) -> tuple[int, int]:
        """How far it is: requests that went through, and the second up to which tiers were read."""
        return self.num_done, self.booking.reached

    def step(self) -> list[Booked]:
        """The next portion of requests, or of a long pause before one; at the end what is left to be said."""
        if not self._portion:
            self._portion.extend(self._reading.next_portion())
            self.is_over = not self._portion
        done: list[Booked] = []
        num_readings = 0
        while self._portion:
            for reading in self.booking.before(self._starts_at + self._portion[0].second):
                done += reading
                num_readings += 1
                if num_readings == PORTION_READINGS:
                    return done
            self._serve(self._portion.popleft().request)
        return done + (self.booking.end() if self.is_over else self.booking.so_far())

    def _serve(self, request: TraceRequest) -> None:
        tenant = self.booking.name_of(request.tenant)
        self.booking.served(self._replayer.serve(request, tenant), request.num_output_tokens, tenant)
        self.num_done += 1

    def check(self) -> None:
        """Walks everything."""
        self._replayer.check()

    def close(self) -> None:
        self._reading.close()

    def _look(self) -> Look:
        stats, reuse = self._replayer.stats(), self._replayer.reuse_counts()
        tiers = {str(tier): told for tier, told in stats.tiers.items()}
        parts = {name: (part.bounds, part.tokens) for name, part in self._replayer.reuse_parts().items()}
        return Look(tiers, reuse.bounds, reuse.tokens, reuse.sample_rate, parts)


def text_requests(path: Path, form: str, tokenizer: Path | None = None) -> Trace:
    """To be sent to a real engine. Raises TraceError, or OSError where the file cannot be read."""
    return open_trace(path, kind=form, load_tokenizer=partial(load_tokenizer, tokenizer), scratch=folder())


def config_of(tiers: list[dict[str, Any]], blocks: Mapping[str, int], block_tokens: int) -> ReplayConfig:
    """Raises ValueError."""
    return ReplayConfig(
        block_tokens,
        tuple(
            ReplayTier(
                Tier(told["tier"]),
                blocks[told["tier"]],
                Policy(told["policy"]),
                WriteMode(told["write_mode"]),
                told["store_after_hits"],
                told.get("tenant_quota", 1.0),
            )
            for told in tiers
        ),
    )
