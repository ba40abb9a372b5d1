"""Which alert conditions hold at a moment, from the store. Reads only; knows nothing about how long they have to.

The same conditions as deploy/prometheus/rules.yml has; what rules_test.yml there expects is expected of both.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from dashboard.models import AlertRule, Source
from dashboard.selectors.kept import oldest_starts, retention
from dashboard.selectors.lookback import sources_by_lookback
from dashboard.selectors.newest import newest_readings
from dashboard.selectors.period import Period
from dashboard.selectors.readable import of_readable
from dashboard.selectors.source_states import NOT_READ, state_of
from dashboard.selectors.store import Metric, series_of, totals_of

Kind = AlertRule.Kind
_HOUR, _WEEK = 3_600, 604_800
_SLOW = ("disk", "remote")
_FULL = 0.95
_READ = Source.objects.filter(is_enabled=True, gone_at=None).exclude(kind=Source.Kind.REPLAY)

Place = tuple[str, ...]
PeriodOf = Callable[[Period, float], Period]


def _itself(period: Period, now: float) -> Period:
    return period


@dataclass(frozen=True)
class Finding:
    """`labels` tell it apart from others of its kind."""

    kind: str
    labels: Mapping[str, str]
    value: float
    summary: str


def findings(kind: str, threshold: float | None, now: float, unread: set[int] | None = None) -> list[Finding]:
    """Everything of that kind that holds now. `unread` gets the sources of which that cannot be told."""
    return list(_CONDITIONS[kind](threshold or 0.0, now, set() if unread is None else unread))


def _until(now: float, seconds: int) -> Period:
    """The last whole minutes, so many seconds of them."""
    end = int(now) // 60 * 60
    return Period(end - seconds // 60 * 60, end, 60)


def _week_before(period: Period, now: float) -> Period:
    """Where minutes are not kept for so long: the whole hours that it fits best, as many."""
    start, end = period.start - _WEEK, period.end - _WEEK
    if start >= oldest_starts(retention(), now)[period.resolution]:
        return Period(start, end, period.step_seconds)
    start = round(start / _HOUR) * _HOUR
    return Period(start, start + max(_HOUR, (end - start) // _HOUR * _HOUR), _HOUR)


def _hit_rate_fell(threshold: float, now: float, unread: set[int]) -> Iterator[Finding]:
    """Of an hour, so that one cold prompt is no news; where nothing was asked in either there is no rate."""
    rates, before = _hit_rates(now, unread), _hit_rates(now, unread, _week_before)
    for (engine, model_name), rate in rates.items():
        earlier = before.get((engine, model_name))
        if earlier is not None and rate < threshold * earlier:
            yield Finding(
                Kind.HIT_RATE_FELL,
                {"engine": engine, "model_name": model_name},
                rate,
                f"{engine}: the hit rate is {_percent(rate)}, {_fall(threshold)} than a week ago.",
            )


def _fall(threshold: float) -> str:
    return "a third less" if threshold == 0.7 else f"less than {_percent(threshold)} of the rate"


def _hit_rates(now: float, unread: set[int], of: PeriodOf = _itself) -> dict[Place, float]:
    sums = _sums(now, unread, (Metric.PROMPT_TOKENS, Metric.HIT_TOKENS), "engine", "model_name", of=of)
    prompts, hits = sums[Metric.PROMPT_TOKENS], sums[Metric.HIT_TOKENS]
    return {place: hits.get(place, 0) / prompt for place, prompt in prompts.items() if prompt > 0}


def _slow_tier(threshold: float, now: float, unread: set[int]) -> Iterator[Finding]:
    hits = _sums(now, unread, (Metric.HIT_TOKENS,), "engine", "model_name", "cache_tier")[Metric.HIT_TOKENS]
    totals: dict[Place, int] = defaultdict(int)
    slow: dict[Place, int] = defaultdict(int)
    for (engine, model_name, tier), tokens in hits.items():
        totals[engine, model_name] += tokens
        slow[engine, model_name] += tokens if tier in _SLOW else 0
    for (engine, model_name), total in totals.items():
        share = slow[engine, model_name] / total if total > 0 else 0.0
        if share > threshold:
            words = f"{engine}: {_percent(share)} of all hits come from disk or remote."
            yield Finding(Kind.SLOW_TIER, {"engine": engine, "model_name": model_name}, share, words)


def _thrashing(threshold: float, now: float, unread: set[int]) -> Iterator[Finding]:
    """Full, and what it drops is computed again soon after: more than that share of the prompt tokens."""
    prompts = _sums(now, unread, (Metric.PROMPT_TOKENS,), "engine")[Metric.PROMPT_TOKENS]
    missed = _sums(now, unread, (Metric.MISSED_TOKENS,), "engine", "cache_tier")[Metric.MISSED_TOKENS]
    for (engine, tier), told in newest_readings((Metric.USED_BYTES, Metric.CAPACITY_BYTES), now, unread=unread).items():
        capacity, prompt = told.get(Metric.CAPACITY_BYTES, 0), prompts.get((engine,), 0)
        used = told.get(Metric.USED_BYTES, 0) / capacity if capacity > 0 else 0.0
        if used > _FULL and prompt > 0 and missed.get((engine, tier), 0) > threshold * prompt:
            words = f"{engine}: {tier} is full, and what it drops is asked for again soon after."
            yield Finding(Kind.THRASHING, {"engine": engine, "cache_tier": tier}, used, words)


def _remote_down(threshold: float, now: float, unread: set[int]) -> Iterator[Finding]:
    for (engine, _), told in newest_readings((Metric.UP,), now, tier="remote", unread=unread).items():
        if not told[Metric.UP]:
            words = f"{engine} has given up its remote tier's server; requests go on without it."
            yield Finding(Kind.REMOTE_DOWN, {"engine": engine}, 0.0, words)


def _source_stale(threshold: float, now: float, unread: set[int]) -> Iterator[Finding]:
    moment = datetime.fromtimestamp(now, UTC)
    for source in _READ.order_by("name"):
        if state_of(source, moment) in NOT_READ:
            words = f"{source.name} could not be read lately: its numbers are old."
            yield Finding(Kind.SOURCE_STALE, {"source": source.name}, 0.0, words)


_CONDITIONS: Mapping[str, Callable[[float, float, set[int]], Iterator[Finding]]] = {
    Kind.HIT_RATE_FELL: _hit_rate_fell,
    Kind.SLOW_TIER: _slow_tier,
    Kind.THRASHING: _thrashing,
    Kind.REMOTE_DOWN: _remote_down,
    Kind.SOURCE_STALE: _source_stale,
}


def _sums(
    now: float, unread: set[int], metrics: tuple[str, ...], *by: str, of: PeriodOf = _itself
) -> dict[str, dict[Place, int]]:
    """Metric → place → Σ over the last hour, or what it is `of` it; over more where a source is read more rarely."""
    found: dict[str, dict[Place, int]] = {metric: defaultdict(int) for metric in metrics}
    series = series_of(metrics, engine=None, model_name=None)
    for seconds, sources in sources_by_lookback(_HOUR).items():
        period = of(_until(now, seconds), now)

        def read(of_: Sequence[int], period: Period = period) -> dict[Place, int]:
            return totals_of(series.filter(source__in=of_), period, "metric", *by)

        for told in of_readable(sources, read, unread):
            for (metric, *place), tokens in told.items():
                found[metric][tuple(place)] += tokens
    return found


def _percent(share: float) -> str:
    """As Prometheus' humanizePercentage writes it."""
    return f"{100 * share:.4g}%"
