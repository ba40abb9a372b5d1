"""Asks a Prometheus, or what speaks its HTTP API (Thanos, Mimir, VictoriaMetrics). Knows no engines.

https://prometheus.io/docs/prometheus/latest/querying/api/#expression-queries, as a form: patterns of all names are
longer than some servers take an address. Series that it calls stale are not in an answer. Where some of its parts are
away, a Thanos and a cluster of VictoriaMetrics answer with what the others have, and say so.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dashboard.sources import http
from dashboard.sources.exposition import MAX_SAMPLES, ExpositionError
from dashboard.sources.target import Allowed

# What going through JSON of another shape raises; an integer of 400 digits is no float.
UNLIKE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
NOT_THAT = (
    "What answers there is no Prometheus; expected the address that a Grafana has for it, like http://prometheus:9090, "
    "http://mimir/prometheus or http://vmselect:8481/select/0/prometheus."
)
_SHOWN = 300  # characters of what it says


@dataclass(frozen=True)
class Series:
    """One of an answer; `name` as the Prometheus has it, "" where the query made it."""

    name: str
    labels: dict[str, str]
    value: float


@dataclass(frozen=True)
class Answer:
    series: tuple[Series, ...]
    warnings: tuple[str, ...]  # sentences, of a part that did not answer for example


class Asking:
    """A server that is asked what it has at one moment: all questions within http.TOTAL_SECONDS, as one scrape."""

    def __init__(self, url: str, at: datetime, allowed: Allowed, clock: Callable[[], float] = time.monotonic) -> None:
        self._url = f"{url.rstrip('/')}/api/v1/query"
        self._at = at
        self._allowed = allowed
        self._clock = clock
        self._ends_at = clock() + http.TOTAL_SECONDS

    def ask(self, query: str) -> Answer:
        """Raises ScrapeError with the server's own words, or ExpositionError for an answer of another kind."""
        seconds = max(self._ends_at - self._clock(), 0.0)
        form = {"query": query, "time": f"{self._at.timestamp():.3f}", "timeout": f"{max(int(seconds), 1)}s"}
        text = http.ask_form(self._url, form, allowed=self._allowed, refusal=refusal, seconds=seconds)
        return answer_of(text)


def answer_of(text: str) -> Answer:
    """What a text of JSON says. Raises ExpositionError where it is no answer of an instant query."""
    try:
        told = json.loads(text)
        if told["status"] != "success" or told["data"]["resultType"] != "vector":
            raise ValueError
        found = tuple(_series(told["data"]["result"]))
        warnings = warnings_of(told)
    except UNLIKE:
        raise ExpositionError(NOT_THAT) from None
    if len(found) > MAX_SAMPLES:
        raise ExpositionError(f"The Prometheus has {len(found):,} such series; at most {MAX_SAMPLES:,} are read.")
    return Answer(found, warnings)


def _series(result: list[dict[str, Any]]) -> Iterator[Series]:
    """Without native histograms, which no table reads."""
    for each in result:
        labels = labels_of(each)
        if "value" in each:
            yield Series(labels.pop("__name__", ""), labels, float(each["value"][1]))


def labels_of(series: Mapping[str, Any]) -> dict[str, str]:
    return {text_of(name): text_of(value) for name, value in series["metric"].items()}


def warnings_of(told: Mapping[str, Any]) -> tuple[str, ...]:
    """A sentence each. VictoriaMetrics has a field where the others have words."""
    words = [*(told.get("warnings") or ()), *(["a part of it did not answer"] if told.get("isPartial") else ())]
    return tuple(f"The Prometheus warns: {_one_line(each)}." for each in words)


def refusal(status: int, text: str) -> str:
    """The rest of a sentence about an answer that is none."""
    try:
        words = json.loads(text)["error"]
    except UNLIKE:
        words = None
    if isinstance(words, str):
        return f": {_one_line(words)}."
    return "; expected 200: it wants another token or header." if status in (401, 403) else f". {NOT_THAT}"


def text_of(told: Any) -> str:
    """Half a character and NUL, which JSON can escape, have no place in a database."""
    return str(told).encode(errors="replace").decode().replace("\x00", "")


def _one_line(words: Any) -> str:
    return " ".join(text_of(words).split())[:_SHOWN].rstrip(".")
