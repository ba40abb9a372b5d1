"""Finds the engines that a Prometheus reads: whatever had cache counters there within the last hour. Stores nothing.

One that is down stays listed for that hour, so that it is a source that fails and not one that is gone.
"""

from collections.abc import Iterable
from datetime import datetime

from dashboard.models_sources import MAX_SELECTOR
from dashboard.sources.detection import marks_of
from dashboard.sources.discovery import MAX_TARGETS, MAX_URL, DiscoveryError, Found
from dashboard.sources.one_engine import TARGET_LABELS
from dashboard.sources.prometheus import check_selector, names_pattern
from dashboard.sources.prometheus_query import Asking, Series
from dashboard.sources.rules import Adapter
from dashboard.sources.target import Allowed

_WITHIN = "1h"
_OURS = "tierscope_engine_info"


def targets_now(
    url: str, selector: str, kind: str, typed: Adapter | None, now: datetime, allowed: Allowed
) -> list[Found]:
    """Each engine's selector and name. Raises ScrapeError, ExpositionError or DiscoveryError, a sentence each."""
    matchers = [check_selector(selector)] if selector else []
    by = ",".join(TARGET_LABELS)
    query = f"count by ({by}) (last_over_time({_of(_marks_pattern(kind, typed), matchers)}[{_WITHIN}]))"
    if kind != "tierscope":  # they speak vLLM's names too, and may be our own
        query += f" unless on ({by}) count by ({by}) (last_over_time({_of(_OURS, matchers)}[{_WITHIN}]))"
    answer = Asking(url, now, allowed).ask(query)
    if answer.warnings:  # of a part that is away for example: its engines would be gone
        raise DiscoveryError(f"{answer.warnings[0]} Such a list changes nothing.")
    found = sorted({_found(url, matchers, series) for series in answer.series})
    if not found:
        told = f" where {{{matchers[0]}}}" if matchers else ""
        raise DiscoveryError(f"The Prometheus had no engine's cache counters{told} within the last hour.")
    if len(found) > MAX_TARGETS:
        raise DiscoveryError(f"The Prometheus has more than {MAX_TARGETS:,} engines, the most that are watched.")
    return found


def _marks_pattern(kind: str, typed: Adapter | None) -> str:
    return "|".join(
        names_pattern([mark[:-1]]).removesuffix("(_total)?") + ".*" if mark.endswith("*") else names_pattern([mark])
        for mark in marks_of(kind, typed)
    )


def _of(pattern: str, matchers: Iterable[str]) -> str:
    return "{" + ",".join([f'__name__=~"{pattern}"', *matchers]) + "}"


def _found(url: str, matchers: list[str], series: Series) -> Found:
    """By its own labels only: what other engines are told by must not make it another source."""
    of_target = [f"{name}={_quoted(series.labels[name])}" for name in TARGET_LABELS if series.labels.get(name)]
    selector = "{" + ",".join([*matchers, *of_target]) + "}"
    name = series.labels.get("instance") or series.labels.get("job") or "engine"
    if len(selector) > MAX_SELECTOR or len(url) > MAX_URL:
        raise DiscoveryError(f"The labels of {name[:60]} are longer than the {MAX_SELECTOR} characters that are kept.")
    return Found(url, name, selector)


def _quoted(value: str) -> str:
    """As PromQL has it."""
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
