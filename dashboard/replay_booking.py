"""What a replay's requests and tiers come to, second by second of the trace, as amounts for the series.

A reading every 10 s of the trace is what a scrape is to a live engine: sizes, residency, what was evicted and moved
since the last one. Readings are as far apart as the buckets that are kept there. Pure; knows no database, no file.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from dashboard.models import Series
from dashboard.sources.adapter import Key, readable
from dashboard.tenants import OTHER, shown

Metric = Series.Metric
FINISHED = "replayed"  # why its requests ended
MAX_TENANTS = 20  # by name
_PPM = 1_000_000


class Served(Protocol):
    """What a request got (tiers/replay/replayer.py)."""

    @property
    def prompt_tokens(self) -> int: ...
    @property
    def hit_tokens(self) -> Mapping[Any, int]: ...
    @property
    def computed_tokens(self) -> int: ...
    @property
    def fits(self) -> bool: ...


@dataclass(frozen=True)
class Look:
    """The tiers at one moment: `stats` by tier as a cache tells them, and the reuse curve's counts.

    `tenants` have the bounds and counts of each one's own curve.
    """

    tiers: Mapping[str, Any]
    reuse_bounds: tuple[int, ...]
    reuse_tokens: tuple[int, ...]
    reuse_rate: float
    tenants: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Booked:
    """`value` more of a counter, or one reading of a gauge, at Unix second `at`."""

    key: Key
    at: int
    value: int


@dataclass
class Counts:
    """Sums of everything that was booked."""

    requests: int = 0
    prompt_tokens: int = 0
    computed_tokens: int = 0
    generated_tokens: int = 0
    too_large: int = 0
    hit_tokens: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    evicted_blocks: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def as_json(self) -> dict[str, Any]:
        return {**vars(self), "hit_tokens": dict(self.hit_tokens), "evicted_blocks": dict(self.evicted_blocks)}


class Booking:
    """Of one replay. `every(at)` says how far apart readings are at that second; `look` reads the tiers."""

    def __init__(
        self,
        engine: str,
        starts_at: int,
        *,
        tiers: tuple[str, ...],
        block_tokens: int,
        bytes_a_token: int,
        every: Callable[[int], int],
        look: Callable[[], Look],
    ) -> None:
        self.counts = Counts()
        self._engine = engine
        self._tiers = tiers
        self._block_tokens = block_tokens
        self._bytes_a_token = bytes_a_token
        self._every = every
        self._look = look
        self._last = look()
        self._has_served = False
        self._open: dict[Key, int] = defaultdict(int)
        self._tenants: set[str] = set()
        self._begin(starts_at)

    def keys(self) -> Iterator[Key]:
        """Of every series that it may come to, but for tenants: all are there from the start, with 0."""
        for metric in (Metric.PROMPT_TOKENS, Metric.COMPUTED_TOKENS, Metric.GENERATED_TOKENS, Metric.REUSE_SAMPLE_PPM):
            yield self._key(metric)
        yield self._key(Metric.REQUESTS, detail=FINISHED)
        for bound in (*map(str, self._last.reuse_bounds), "+Inf"):
            yield self._key(Metric.REUSE_TOKENS, detail=bound)
        for tier in self._tiers:
            yield self._key(Metric.HIT_TOKENS, tier)
            yield from self._facts(tier, self._last)
            yield from self._gauges(tier, self._last)

    # -- one request after the other -----------------------------------------------------------------------------------
    @property
    def reached(self) -> int:
        """The second up to which everything is read."""
        return self._starts_at

    def before(self, at: int) -> Iterator[list[Booked]]:
        """Reading by reading all that lies wholly before a request at second `at`; go through it before the request is
        served. In a long pause it may be left, and gone on with later."""
        while at >= self._ends_at:
            done = self._read()
            self._begin(self._ends_at)
            yield done

    def served(self, served: Served, generated_tokens: int, tenant: str) -> None:
        """A request in the stretch that is open; `tenant` as `name_of` has it."""
        self._has_served = True
        counts, booked = self.counts, self._open
        counts.requests += 1
        counts.too_large += not served.fits
        counts.prompt_tokens += served.prompt_tokens
        counts.computed_tokens += served.computed_tokens
        counts.generated_tokens += generated_tokens
        booked[self._key(Metric.REQUESTS, detail=FINISHED)] += 1
        booked[self._key(Metric.PROMPT_TOKENS)] += served.prompt_tokens
        booked[self._key(Metric.COMPUTED_TOKENS)] += served.computed_tokens
        booked[self._key(Metric.GENERATED_TOKENS)] += generated_tokens
        for tier, tokens in served.hit_tokens.items():
            counts.hit_tokens[str(tier)] += tokens
            booked[self._key(Metric.HIT_TOKENS, str(tier))] += tokens
        self._of_tenant(served, tenant)

    def so_far(self) -> list[Booked]:
        """What the open stretch has until now; more of it may come."""
        done = [Booked(key, self._starts_at, value) for key, value in self._open.items() if value]
        self._open.clear()
        return done

    def end(self) -> list[Booked]:
        """After the last request."""
        return self._read()

    # -- details -------------------------------------------------------------------------------------------------------
    def _begin(self, at: int) -> None:
        every = self._every(at)
        self._starts_at = at
        self._ends_at = at - at % every + every

    def _key(self, metric: str, tier: str = "", detail: str = "") -> Key:
        return Key(self._engine, "", str(metric), tier, detail)

    def _read(self) -> list[Booked]:
        """As a scrape at the stretch's end would have it."""
        if self._has_served:
            now = self._look()
            self._add_increases(now)
            self._last, self._has_served = now, False
        done = self.so_far()
        readings = {
            self._key(Metric.SCRAPES): 1,
            self._key(Metric.REUSE_SAMPLE_PPM): round(_PPM * self._last.reuse_rate),
        }
        for tier in self._tiers:
            readings |= self._gauges(tier, self._last)
        return done + [Booked(key, self._starts_at, value) for key, value in readings.items()]

    def _add_increases(self, now: Look) -> None:
        for tier in self._tiers:
            before = self._facts(tier, self._last)
            for key, value in self._facts(tier, now).items():
                self._open[key] += value - before[key]
            evicted = sum(now.tiers[tier].evicted_blocks.values()) - sum(self._last.tiers[tier].evicted_blocks.values())
            self.counts.evicted_blocks[tier] += evicted
        for key, tokens in self._reuse(now).items():
            self._open[key] += tokens
        for key, tokens in self._reuse(self._last).items():
            self._open[key] -= tokens

    def _reuse(self, look: Look) -> dict[Key, int]:
        counts = zip((*map(str, look.reuse_bounds), "+Inf"), look.reuse_tokens, strict=True)
        found = {self._key(Metric.REUSE_TOKENS, detail=bound): tokens for bound, tokens in counts}
        for tenant, (bounds, of_tenant) in look.tenants.items():
            for bound, tokens in zip((*map(str, bounds), "+Inf"), of_tenant, strict=True):
                found[self._key(Metric.TENANT_REUSE_TOKENS, detail=f"{bound} {tenant}")] = tokens
        return found

    def _facts(self, tier: str, look: Look) -> dict[Key, int]:
        """Counters of one tier. What copies took is not told: nothing was copied."""
        told, block = look.tiers[tier], self._block_tokens
        facts = {
            self._key(Metric.LOADED_BLOCKS, tier): told.loaded_blocks,
            self._key(Metric.LOADED_BYTES, tier): told.loaded_blocks * block * self._bytes_a_token,
            self._key(Metric.STORED_BLOCKS, tier): told.stored_blocks,
            self._key(Metric.STORED_BYTES, tier): told.stored_blocks * block * self._bytes_a_token,
            self._key(Metric.MISSED_TOKENS, tier): told.missed_blocks * block,
        }
        facts |= {self._key(Metric.EVICTED_BLOCKS, tier, why): number for why, number in told.evicted_blocks.items()}
        facts |= {
            self._key(Metric.ENTERED_TOKENS, tier, origin): n * block for origin, n in told.entered_blocks.items()
        }
        facts |= {self._key(Metric.LEFT_TOKENS, tier, to): n * block for to, n in told.left_blocks.items()}
        return facts

    def _gauges(self, tier: str, look: Look) -> dict[Key, int]:
        told, block = look.tiers[tier], self._block_tokens
        resident, capacity = told.resident_blocks * block, told.capacity_blocks * block
        return {
            self._key(Metric.RESIDENT_TOKENS, tier): resident,
            self._key(Metric.CAPACITY_TOKENS, tier): capacity,
            self._key(Metric.USED_BYTES, tier): resident * self._bytes_a_token,
            self._key(Metric.CAPACITY_BYTES, tier): capacity * self._bytes_a_token,
        }

    def name_of(self, tenant: str) -> str:
        """What it is counted as, from now on: the first of them by name."""
        name = shown(readable(tenant))[:32]
        if name not in self._tenants and len(self._tenants) >= MAX_TENANTS:
            return OTHER
        self._tenants.add(name)
        return name

    def _of_tenant(self, served: Served, tenant: str) -> None:
        self._open[self._key(Metric.TENANT_PROMPT_TOKENS, detail=tenant)] += served.prompt_tokens
        self._open[self._key(Metric.TENANT_COMPUTED_TOKENS, detail=tenant)] += served.computed_tokens
        for tier, tokens in served.hit_tokens.items():
            self._open[self._key(Metric.TENANT_HIT_TOKENS, str(tier), tenant)] += tokens
