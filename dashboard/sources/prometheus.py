"""Reads an engine's history from a Prometheus, or what speaks its HTTP API (Thanos, Mimir, VictoriaMetrics).

`query_range` gives the value of every series at each step; the series of one step are what the engine's text was then.
https://prometheus.io/docs/prometheus/latest/querying/api/#range-queries. Stores nothing.
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from dashboard.sources.exposition import Exposition, ExpositionError, Sample, canonical_name
from dashboard.sources.http import fetch
from dashboard.sources.rules import Adapter
from dashboard.sources.tables import DETECTION_ORDER
from dashboard.sources.target import Allowed

MAX_POINTS = 120  # a query: 600 series of it are 2 MB, an eighth of what is read at all
# What going through JSON of another shape raises; an integer of 400 digits is no float.
UNLIKE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
NOT_THAT = "What answers there is no Prometheus; expected its address without a path, like the page's."
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


Ask = Callable[[str, Allowed], str]


def ask(url: str, allowed: Allowed) -> str:
    """The JSON at `url`. Raises ScrapeError."""
    return fetch(url, headers=allowed.headers, tls=allowed.tls, accept="application/json")


def check_server(url: str, allowed: Allowed, ask: Ask = ask) -> None:
    """Raises ScrapeError or HistoryError unless something that speaks Prometheus' API answers there."""
    try:
        is_well = json.loads(ask(f"{url.rstrip('/')}/api/v1/query?query=1", allowed))["status"] == "success"
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
    by_second: dict[int, list[Sample]] = defaultdict(list)
    asked = {"start": start, "end": end, "step": step_seconds}
    for names in _questions(adapter):
        query = f'{{__name__=~"{names}",{check_selector(history.selector)}}}'
        url = f"{history.url.rstrip('/')}/api/v1/query_range?{urlencode({'query': query, **asked})}"
        for second, sample in _samples(ask(url, history.allowed)):
            by_second[second].append(sample)
    return ((second, Exposition(tuple(by_second[second]), ())) for second in sorted(by_second))


def _questions(adapter: Adapter | None) -> Iterable[str]:
    """Patterns of the names that a table reads; one a table, for all in one would be too long for an address."""
    for each in [adapter] if adapter else DETECTION_ORDER:
        yield names_pattern(rule.name for rule in each.rules)


def names_pattern(names: Iterable[str]) -> str:
    """A regular expression of every spelling of these canonical names."""
    return "(ray_)?(" + "|".join(name.replace("_", "[:_]") for name in sorted(set(names))) + ")(_total)?"


def _samples(text: str) -> Iterator[tuple[int, Sample]]:
    try:
        told = json.loads(text)
        if told["status"] != "success" or told["data"]["resultType"] != "matrix":
            raise ValueError
        for series in told["data"]["result"]:
            yield from _values(series)
    except UNLIKE:
        raise HistoryError("The answer is no history; expected that of Prometheus' query_range.") from None


def _values(series: dict[str, Any]) -> Iterator[tuple[int, Sample]]:
    labels = {text_of(name): text_of(value) for name, value in series["metric"].items()}
    name = canonical_name(labels.pop("__name__"))
    for second, value in series["values"]:
        yield round(float(second)), Sample(name, labels, float(value))


def text_of(told: Any) -> str:
    """Half a character and NUL, which JSON can escape, have no place in a database."""
    return str(told).encode(errors="replace").decode().replace("\x00", "")
