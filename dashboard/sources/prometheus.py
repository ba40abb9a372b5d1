"""Reads an engine's history from a Prometheus, or what speaks its HTTP API (Thanos, Mimir, VictoriaMetrics).

`query_range` gives the value of every series at each step; the series of one step are what the engine's text was then.
A step that stands alone is asked as a moment: Thanos' query frontend moves the ends of a range to multiples of the step
(--query-range.align-range-with-step). Stores nothing.
https://prometheus.io/docs/prometheus/latest/querying/api/#range-queries
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from dashboard.sources import http
from dashboard.sources.exposition import Exposition, ExpositionError, Sample, canonical_name
from dashboard.sources.one_engine import Place, place_of, told_apart
from dashboard.sources.prometheus_query import NOT_THAT, UNLIKE, labels_of, refusal, warnings_of
from dashboard.sources.rules import Adapter
from dashboard.sources.tables import DETECTION_ORDER
from dashboard.sources.target import Allowed

MAX_POINTS = 120  # a query: 600 series of it are 2 MB, an eighth of what is read at all
ANSWER_SECONDS = 60.0  # old blocks may lie in an object store, and nothing waits for an import
NO_STORE = "No StoreAPIs matched for this query"  # what an older Thanos warns of where no store has that time
_LOOK_BACK_SECONDS = 300  # a Prometheus tells a series for so long after its last sample, where nothing says it ended
_MATCHER = r'[A-Za-z_]\w*\s*(?:=~|!=|!~|=)\s*"(?:[^"\\]|\\.)*"'
_SELECTOR = re.compile(rf"\{{?\s*({_MATCHER}(?:\s*,\s*{_MATCHER})*)\s*,?\s*\}}?")


class HistoryError(ExpositionError):
    """The answer cannot be used; the message is one sentence for a person."""


@dataclass(frozen=True)
class History:
    """Where an engine's history is: the server, and which series are that engine's (`{instance="gpu-7:8000"}`)."""

    url: str
    selector: str
    allowed: Allowed = field(repr=False)


Form = Mapping[str, str]
Ask = Callable[[str, Form, Allowed], str]


def ask(url: str, form: Form, allowed: Allowed) -> str:
    """The JSON that is answered to a form. Raises ScrapeError with the server's own words."""
    return http.ask_form(url, form, allowed=allowed, refusal=refusal, seconds=ANSWER_SECONDS, may_be_silent=True)


def check_server(url: str, allowed: Allowed, ask: Ask = ask) -> None:
    """Raises ScrapeError or HistoryError unless something that speaks Prometheus' API answers there."""
    try:
        is_well = json.loads(ask(f"{url.rstrip('/')}/api/v1/query", {"query": "1"}, allowed))["status"] == "success"
    except UNLIKE:
        is_well = False
    if not is_well:
        raise HistoryError(NOT_THAT)


def check_selector(text: str) -> str:
    """The matchers without braces. Raises HistoryError unless they choose by labels and leave the names to us."""
    match = _SELECTOR.fullmatch(text.strip())
    if match is None or "__name__" in text:
        raise HistoryError('Enter which series are this engine\'s by their labels, like {instance="gpu-7:8000"}.')
    return match[1]


def steps(
    history: History, adapter: Adapter | None, start: float, end: float, step_seconds: int, ask: Ask = ask
) -> Iterator[tuple[int, Exposition]]:
    """(Unix second, what the engine's text was then) of each step that has any, `start` and `end` included, in order.

    Raises ScrapeError or HistoryError. Without an adapter all names that any table reads are asked for.
    """
    if end < start:
        return iter(())
    adapters = [adapter] if adapter else DETECTION_ORDER
    names = names_pattern(rule.name for each in adapters for rule in each.rules)
    query = f'{{__name__=~"{names}",{check_selector(history.selector)}}}'
    by_second: dict[int, dict[Place, list[Sample]]] = defaultdict(lambda: defaultdict(list))
    for second, sample in _samples(_asked(history, query, start, end, step_seconds, ask)):
        _check_asked(second, start, end)
        by_second[second][place_of(sample.labels)].append(sample)
    kept = _of_one(by_second, step_seconds, check_selector(history.selector))
    return ((second, Exposition(tuple(by_second[second][kept[second]]), ())) for second in sorted(by_second))


def _check_asked(second: int, start: float, end: float) -> None:
    """Raises HistoryError for a time that was not asked for: what is booked there would be booked once more with the
    piece that asks for it, or lie in the future.
    """
    if not start - 1 <= second <= end + 1:  # seconds are rounded
        asked = " to ".join(f"{datetime.fromtimestamp(each, UTC):%Y-%m-%d %H:%M}" for each in (start, end))
        raise HistoryError(
            f"The answer has samples of other times than those that were asked for ({asked} UTC): nothing of it is "
            "imported. Does something between here and the Prometheus answer in its place?"
        )


def _of_one(by_second: Mapping[int, Collection[Place]], step_seconds: int, selector: str) -> dict[int, Place]:
    """Whose samples count at each second. An engine that moved has two places for as long as a Prometheus goes on
    telling what ended; the newer one counts, as a restart. Raises HistoryError for two that go on side by side.
    """
    seconds: dict[Place, list[int]] = defaultdict(list)
    for second in sorted(by_second):
        for place in by_second[second]:
            seconds[place].append(second)
    num_crowded = sum(len(places) > 1 for places in by_second.values())
    if num_crowded > _LOOK_BACK_SECONDS // step_seconds + 1:
        raise HistoryError(told_apart(seconds, selector))
    newness = {place: (seen[-1], seen[0]) for place, seen in seconds.items()}
    return {second: max(places, key=newness.__getitem__) for second, places in by_second.items()}


def _asked(history: History, query: str, start: float, end: float, step_seconds: int, ask: Ask) -> str:
    """A VictoriaMetrics keeps the answers to ranges, also where it was given more samples since: none of these."""
    api = f"{history.url.rstrip('/')}/api/v1"
    if start == end:
        return ask(f"{api}/query", {"query": query, "time": str(start)}, history.allowed)
    form = {"query": query, "start": str(start), "end": str(end), "step": str(step_seconds), "nocache": "1"}
    return ask(f"{api}/query_range", form, history.allowed)


def names_pattern(names: Iterable[str]) -> str:
    """A regular expression of every spelling of these canonical names: a VictoriaMetrics keeps OpenTelemetry's dots."""
    return "(ray_)?(" + "|".join(name.replace("_", "[:_.]") for name in sorted(set(names))) + ")(_total)?"


def _samples(text: str) -> Iterator[tuple[int, Sample]]:
    try:
        told = json.loads(text)
        if told["status"] != "success" or told["data"]["resultType"] not in ("matrix", "vector"):
            raise ValueError
        warnings = [each for each in warnings_of(told) if NO_STORE not in each or told["data"]["result"]]
        found = [sample for series in told["data"]["result"] for sample in _values(series)]
    except UNLIKE:
        raise HistoryError("The answer is no history; expected that of Prometheus' query_range.") from None
    if warnings:
        raise HistoryError(f"{warnings[0]} What may be a part of the history is not imported; it is asked for again.")
    yield from found


def _values(series: dict[str, Any]) -> Iterator[tuple[int, Sample]]:
    """Without native histograms, which no table reads."""
    labels = labels_of(series)
    name = canonical_name(labels.pop("__name__"))
    alone = [series["value"]] if "value" in series else []
    for second, value in series.get("values", alone):
        yield round(float(second)), Sample(name, labels, float(value))
