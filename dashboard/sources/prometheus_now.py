"""Reads what a Prometheus has of one engine now, as if the engine's own text had been read. Stores nothing.

One query has the value of every counter at one moment, another when they were sampled: that is when they are booked,
and what was sampled before is nothing new. An engine that ended has no series there from its next scrape on (staleness
markers); where there are none, its last values are told for five minutes, and only the second query knows.
https://prometheus.io/docs/prometheus/latest/querying/basics/#staleness
"""

import math
from collections.abc import Iterable, Set
from datetime import UTC, datetime

from dashboard.sources.exposition import Exposition, ExpositionError, Sample, canonical_name
from dashboard.sources.one_engine import place_of, told_apart
from dashboard.sources.prometheus import check_selector, names_pattern
from dashboard.sources.prometheus_query import Asking
from dashboard.sources.target import Target

MAX_AGE_SECONDS = 150  # two scrapes a minute apart, and something; Prometheus itself gives up after 300
_NOT_WHOLE = (  # a sum over fewer series is smaller, and a smaller value is a restart
    "What may be a part of the engine's series is not counted. Where the rest is of other engines: matchers for labels "
    "of its store, like cluster, keep a Thanos from asking others."
)
_UP = "up"
# Fewer than 0.8 samples a look are too few: as often as it is asked makes 0.9 to 1.1, every 15 s for every 10 s 0.7.
_LOOKS, _FEWEST = 10, 0.8
_COUNTED = "tierscope_counted"  # a label of the answer's numbers of samples, beside which are their times


def exposition_now(target: Target, names: Set[str], now: datetime) -> Exposition:
    """The engine's samples, with `at` when they were taken. Raises ScrapeError or ExpositionError, a sentence each."""
    selector = check_selector(target.selector)
    pattern = names_pattern(name for name in names if not name.endswith("*"))
    query = f'{{__name__=~"{pattern}|{_UP}",{selector}}}'
    server = Asking(target.url, now, target.allowed)
    answer = server.ask(query)
    if answer.warnings:
        raise ExpositionError(f"{answer.warnings[0]} {_NOT_WHOLE}")
    found = [series for series in answer.series if series.name != _UP]
    if not found:
        raise ExpositionError(_why_nothing([series.value for series in answer.series], selector))
    if problem := told_apart((place_of(series.labels) for series in found), selector):
        raise ExpositionError(problem)  # one that ends would look like a restart of both
    at, remarks = _sampled(server, min(series.name for series in found), selector, now, target.every_seconds)
    samples = tuple(Sample(canonical_name(series.name), series.labels, series.value) for series in found)
    return Exposition(samples, remarks, at=at)


def _why_nothing(ups: list[float], selector: str) -> str:
    """The same from look to look: pages read changes out."""
    if ups and not any(ups):
        return f"The Prometheus cannot read the engine itself: up is 0 where {{{selector}}}."
    if ups:
        return f"The Prometheus has series where {{{selector}}}, but no cache counters of an engine that is known here."
    return (
        f"The Prometheus has no series where {{{selector}}} now: check the labels there, whether the engine runs, and "
        "this machine's clock."
    )


def _sampled(server: Asking, name: str, selector: str, now: datetime, every: int) -> tuple[datetime, tuple[str, ...]]:
    """When, and what is to be said about how often. All of a scrape's samples have its time. `timestamp` takes one name
    only: it leaves names out of its answer.
    """
    of = f'{{__name__="{name}",{selector}}}'
    told = server.ask(f"timestamp({of})" + (f" or {_num_samples(of, every)}" if _is_compared(every) else "")).series
    at = _newest([series.value for series in told if _COUNTED not in series.labels], now)
    counts = [series.value for series in told if _COUNTED in series.labels]
    if not counts or max(counts) >= _FEWEST * _LOOKS:
        return at, ()
    return at, (
        f"The Prometheus reads the engine more seldom than every {every} s, as often as it is asked here: charts have "
        "gaps between its samples. Read it at the interval of its scrapes.",
    )


def _is_compared(every_seconds: int) -> bool:
    """What is asked more seldom than this is no more seldom than any scrape that is young enough to be read."""
    return 0 < every_seconds <= MAX_AGE_SECONDS


def _num_samples(of: str, every_seconds: int) -> str:
    """PromQL: the samples within ten looks, of what had some before those: a new engine has few for another reason."""
    span = f"[{every_seconds * _LOOKS}s]"
    counted = f"(count_over_time({of}{span}) and count_over_time({of}{span} offset {every_seconds * _LOOKS}s))"
    return f'label_replace({counted}, "{_COUNTED}", "1", "", "")'


def _newest(times: Iterable[float], now: datetime) -> datetime:
    newest = max((each for each in times if 0 < each < math.inf), default=None)
    if newest is None:
        raise ExpositionError("The Prometheus does not say when it read the engine; expected the times of its samples.")
    if (age := now.timestamp() - newest) > MAX_AGE_SECONDS:
        raise ExpositionError(
            f"What the Prometheus has of the engine is more than {int(age) // 60} minutes old: it reads it no more, or "
            "this machine's clock is ahead."
        )
    return datetime.fromtimestamp(min(newest, now.timestamp()), UTC)
