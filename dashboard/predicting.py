"""What one engine would do with other tier sizes: hits by tier, time to first token, bill. Pure; knows no database.

The one module of the web process that asks `tiers`, of which it loads plain integers only. docs/what-if.md says what is
measured here, what is predicted and what is assumed.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property

from dashboard.selectors.latency import Histogram, quantile
from dashboard.selectors.prices import HOURS_A_MONTH, PriceList
from dashboard.selectors.reuse import ReuseCurve
from dashboard.selectors.tier_sizes import TierSize
from dashboard.selectors.waits import BlockWaits
from dashboard.selectors.what_if import Measured
from dashboard.typed_costs import NOTHING_TYPED, Prefill, TypedCosts
from tiers.names import WriteMode
from tiers.whatif.binned import BinnedCurve, depths, shaped
from tiers.whatif.eviction_time import Waits, curve_below

GIB = 2**30
Sizes = Mapping[str, int]  # tier → bytes
Shares = Mapping[str, float]  # tier → share of the prompt tokens
_NONE_READ = ""
_ROOM = 4  # times as far as anything was used again


def estimated(waits: BlockWaits) -> ReuseCurve:
    """The curve up to today's size, in the form that an engine counts which knows it."""
    found = curve_below(Waits(**asdict(waits)))
    return ReuseCurve(
        found.bounds, found.tokens, found.never_tokens, found.total, sample_rate=None, known_up_to=waits.capacity
    )


def of_tenant(told: ReuseCurve, whole: ReuseCurve) -> ReuseCurve:
    """A tenant's curve, counted at fewer capacities, at those of the `whole` engine and with its shape in between."""
    if not set(told.bounds) <= set(whole.bounds):  # engines with blocks of several sizes
        return replace(told, sample_rate=whole.sample_rate)
    curves = (BinnedCurve(each.bounds, each.tokens, each.never_tokens) for each in (told, whole))
    found = shaped(*curves)
    return ReuseCurve(found.bounds, found.tokens, found.never_tokens, found.total, whole.sample_rate)


@dataclass(frozen=True)
class Outcome:
    """`hit` by tier; times are None where nothing tells what they are made of, dollars where no price was typed.

    Dollars are by what they pay for, a month: a tier's memory, or "prefill"; `million_dollars` are those of a million
    prompt tokens. `saved_seconds` of prefill were, or would have been, hits in the period.
    """

    hit: Shares
    ttft_seconds: float | None
    ttft_p95_seconds: float | None
    dollars: Mapping[str, float]
    million_dollars: float | None
    saved_seconds: float | None

    @property
    def hit_rate(self) -> float:
        return sum(self.hit.values())

    @property
    def computed(self) -> float:
        return 1.0 - self.hit_rate

    @property
    def bill(self) -> float | None:
        return sum(self.dollars.values()) if self.dollars else None


@dataclass(frozen=True)
class Predictor:
    """`tiers` fastest first, as they are today."""

    measured: Measured
    tiers: Sequence[TierSize]
    prices: PriceList
    typed: TypedCosts = NOTHING_TYPED

    @cached_property
    def curve(self) -> BinnedCurve:
        told = self.measured.curve
        return BinnedCurve(told.bounds, told.tokens, told.never_tokens)

    @cached_property
    def points(self) -> list[tuple[int, float]]:
        """(capacity in tokens, hit rate) at each counted capacity."""
        curve = self.curve
        return [(bound, curve.hits(bound) / curve.total if curve.total else 0.0) for bound in curve.bounds]

    @property
    def today(self) -> dict[str, int]:
        return {tier.tier: tier.num_bytes for tier in self.tiers}

    @cached_property
    def modes(self) -> list[WriteMode]:
        """Of a tier that does not tell it, what is the default: write_back."""
        return [WriteMode(tier.modes.get("write_mode", WriteMode.WRITE_BACK)) for tier in self.tiers]

    def range_of(self, tier: TierSize) -> tuple[int, int]:
        """Bytes to look at: from the smallest counted capacity to well beyond where anything was used again, or as far
        as something is known.
        """
        curve = self.curve
        useful = max(
            (b for b, tokens in zip(curve.bounds, curve.tokens, strict=True) if tokens), default=curve.bounds[-1]
        )
        least = max(tier.least_bytes, round(curve.bounds[0] * tier.bytes_a_token), 1)
        if self.measured.curve.known_up_to is not None:
            return least, max(tier.num_bytes, 2 * least)
        return least, max(round(_ROOM * useful * tier.bytes_a_token), 2 * tier.num_bytes, 2 * least)

    def stretches(self, sizes: Sizes) -> list[tuple[int, int]]:
        """Each tier's part of the common stack, in tokens."""
        return depths([tier.tokens(sizes[tier.tier]) for tier in self.tiers], self.modes)

    def hit(self, sizes: Sizes) -> dict[str, float]:
        total = self.curve.total
        spans = zip(self.tiers, self.stretches(sizes), strict=True)
        return {
            tier.tier: (self.curve.hits(end) - self.curve.hits(start)) / total if total else 0.0
            for tier, (start, end) in spans
        }

    def predict(self, sizes: Sizes) -> Outcome:
        """Raises KeyError for a tier without a size."""
        hit = self.hit(sizes)
        return self._outcome(hit, sizes, self.mean_ttft(hit), self.p95_ttft(hit))

    @cached_property
    def as_measured(self) -> Outcome:
        """What was counted, with today's sizes."""
        shares = self.as_measured_shares
        p95 = quantile(0.95, _added(self.measured.ttft.values()))
        return self._outcome(shares, self.today, self.measured.mean_ttft_seconds, p95)

    def _outcome(self, hit: Shares, sizes: Sizes, mean: float | None, p95: float | None) -> Outcome:
        hit_rate = sum(hit.values())
        dollars = self.dollars(sizes, computed=1.0 - hit_rate)
        return Outcome(hit, mean, p95, dollars, self._of_a_million(dollars), self._saved_seconds(hit_rate))

    # -- time ----------------------------------------------------------------------------------------------------------
    @cached_property
    def prefill(self) -> Prefill | None:
        """As it was measured, the same at every position, or else as it was typed."""
        measured = self.measured.costs.prefill_seconds_a_token
        return self.typed.prefill if measured is None else Prefill(((0, measured),))

    @property
    def is_prefill_typed(self) -> bool:
        return self.prefill is not None and self.measured.costs.prefill_seconds_a_token is None

    @cached_property
    def prompt_length(self) -> float:
        """Tokens of the mean prompt; 1 where nobody tells how many prompts there were."""
        num_answered = self.measured.num_answered
        return max(1.0, self.measured.costs.prompt_tokens / num_answered) if num_answered else 1.0

    def computing(self, hit_rate: float) -> float | None:
        """Seconds of prefill for the mean prompt token, where that share of each prompt, from its start on, is hit."""
        length = self.prompt_length
        return None if self.prefill is None else self.prefill.seconds(min(hit_rate, 1.0) * length, length) / length

    @cached_property
    def prefill_seconds(self) -> float | None:
        """A computed token takes, in the mean of a whole prompt."""
        return self.computing(0.0)

    def load_seconds(self, tier: str) -> float:
        """A hit token takes; as much as computing it where nobody tells, so that nothing is promised."""
        if tier == "gpu":
            return 0.0
        told = self.measured.costs.tiers[tier].load_seconds_a_token
        if told is None and tier in self.typed.loads:
            return next(each.bytes_a_token for each in self.tiers if each.tier == tier) / self.typed.loads[tier]
        return (self.prefill_seconds or 0.0) if told is None else told

    def is_load_measured(self, tier: str) -> bool:
        return tier == "gpu" or self.measured.costs.tiers[tier].load_seconds_a_token is not None

    def is_load_typed(self, tier: str) -> bool:
        return not self.is_load_measured(tier) and tier in self.typed.loads

    def prompt_seconds(self, hit: Shares) -> float | None:
        """Of prefill and loads for the mean prompt token."""
        computing = self.computing(sum(hit.values()))
        if computing is None:
            return None
        return computing + sum(share * self.load_seconds(tier) for tier, share in hit.items())

    def mean_ttft(self, hit: Shares) -> float | None:
        """The measured mean, plus what prefill and loads of the mean prompt change; waiting stays as it was."""
        now, then = self.prompt_seconds(self.as_measured_shares), self.prompt_seconds(hit)
        mean, num_answered = self.measured.mean_ttft_seconds, self.measured.num_answered
        if now is None or then is None or mean is None or not num_answered:
            return None
        return max(0.0, mean + (then - now) * self.measured.costs.prompt_tokens / num_answered)

    @cached_property
    def as_measured_shares(self) -> Shares:
        hit = self.measured.hit_shares
        return {tier.tier: hit.get(tier.tier, 0.0) for tier in self.tiers}

    def p95_ttft(self, hit: Shares) -> float | None:
        """Of the measured times by the slowest tier read, weighed anew: as a tier's share of the tokens changes.

        A tier that nobody read from in the period borrows the times of the next slower one that was read from.
        """
        weights = self._weights(hit)
        mixed: dict[float, float] = defaultdict(float)
        for tier, weight in weights.items():
            histogram = self._histogram(tier)
            num = sum(histogram.values())
            for bound, count in histogram.items():
                mixed[bound] += weight * count / num if num else 0.0
        return quantile(0.95, mixed)

    def _weights(self, hit: Shares) -> dict[str, float]:
        now = self.as_measured_shares
        shares = {_NONE_READ: (1.0 - sum(now.values()), 1.0 - sum(hit.values()))}
        shares |= {tier: (now[tier], share) for tier, share in hit.items()}
        counts = {tier: sum(self.measured.ttft.get(tier, {}).values()) for tier in shares}
        total = sum(counts.values()) or 1
        return {
            tier: counts[tier] / total * then / before if before > 0 and counts[tier] else then
            for tier, (before, then) in shares.items()
        }

    def _histogram(self, tier: str) -> Histogram:
        names = [each.tier for each in self.tiers]
        slower = [*names[names.index(tier) :], _NONE_READ] if tier in names else [_NONE_READ]
        told = (self.measured.ttft.get(name, {}) for name in slower)
        return next((histogram for histogram in told if sum(histogram.values())), {})

    # -- money ---------------------------------------------------------------------------------------------------------
    def dollars(self, sizes: Sizes, computed: float) -> dict[str, float]:
        """A month of the sizes, and of computing that share of prompts that come as they did in the period."""
        typed = self.prices.gib_month
        found = {tier.tier: sizes[tier.tier] / GIB * typed[tier.tier] for tier in self.tiers if tier.tier in typed}
        if self.prices.gpu_hour is not None and (busy := self._prefill_load(computed)) is not None:
            found["prefill"] = busy * HOURS_A_MONTH * self.prices.gpu_hour
        return found

    @property
    def _tokens_a_second(self) -> float | None:
        """Prompt tokens, as they came in the period."""
        seconds = self.measured.observed_seconds
        return self.measured.costs.prompt_tokens / seconds if seconds else None

    def _of_a_million(self, dollars: Mapping[str, float]) -> float | None:
        """What a month costs, by the prompt tokens that come in one."""
        if not (dollars and (come := self._tokens_a_second)):
            return None
        return sum(dollars.values()) / (come * HOURS_A_MONTH * 3600) * 1_000_000

    def _saved_seconds(self, hit_rate: float) -> float | None:
        whole, rest = self.computing(0.0), self.computing(hit_rate)
        return None if whole is None or rest is None else self.measured.costs.prompt_tokens * (whole - rest)

    def _prefill_load(self, computed: float) -> float | None:
        """Seconds of prefill a second, if that share of the period's prompt tokens was computed."""
        come, computing = self._tokens_a_second, self.computing(1.0 - computed)
        return None if come is None or computing is None else come * computing


def _added(histograms: Iterable[Histogram]) -> dict[float, int]:
    added: dict[float, int] = defaultdict(int)
    for histogram in histograms:
        for bound, count in histogram.items():
            added[bound] += count
    return added
