"""`/api/engine.json`: one engine's tokens of the period, its tiers, its alerts, and what it cannot tell."""

import time
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from django.http import HttpRequest

from dashboard.charts import words
from dashboard.charts.engine_words import cannot_tell, size_cells
from dashboard.charts.tiles import hit_rate, origins
from dashboard.models import Alert, EngineKind, Source
from dashboard.selectors import engines as live
from dashboard.selectors.alerts import alerts_of
from dashboard.selectors.engine_facts import EngineFacts, engine_facts
from dashboard.selectors.period import last
from dashboard.selectors.sizes_now import size_rows
from dashboard.selectors.source_states import SourceState, describe
from dashboard.selectors.totals import totals
from dashboard.sources.tables import ADAPTERS
from dashboard.views.answers import json_view
from dashboard.views.chart_data import tiles_of
from dashboard.views.now import state_of_page
from dashboard.views.params import BadParameterError, read_query

_LATELY_SECONDS = 300


@json_view()
def engine_json(request: HttpRequest) -> dict[str, Any]:
    """`engine` names it; the model filter keeps one of its models in all that is counted."""
    now = time.time()
    query = read_query(request.GET, now)
    alive, moment = live.fleet(), datetime.fromtimestamp(now, UTC)
    facts = engine_facts(query.engine or "", alive, moment)
    if facts is None:
        raise BadParameterError(f"There is no engine “{(query.engine or '')[:80]}”.")
    return {
        **tiles_of(query, now),
        "lately": _lately(facts.name, query.model_name, now),
        "state": facts.rows[0].state,
        "facts": [{"name": name, "value": value} for name, value in _facts(facts, alive, moment)],
        "sizes": size_cells(size_rows(alive, now, engine=facts.name)),
        "alerts": [_alert(alert, moment) for alert in alerts_of(facts.name, facts.source.name)],
        "cannot_tell": cannot_tell(facts.told, is_own=facts.is_own),
        "note": _note(facts),
        **state_of_page(alive, facts.name, now),
    }


def _lately(engine: str, model_name: str | None, now: float) -> str:
    """The last five minutes, whatever the period of the page is."""
    counted = totals(last(_LATELY_SECONDS, now=now), engine=engine, model_name=model_name)
    if not counted["is_observed"]:
        return "Not observed in the last 5 minutes."
    if counted["prompt_tokens"] == 0:
        return "Nothing was asked in the last 5 minutes."
    if counted["prompt_tokens"] is None:
        hit = words.count(sum(counted["hit_tokens"].values()))
        return f"Last 5 minutes: {hit} hit tokens; what was asked is not told."
    rate, asked = hit_rate(counted), f"{words.count(counted['prompt_tokens'])} prompt tokens"
    if rate is None:
        return f"Last 5 minutes: {asked}; what was hit is not told."
    split = ", ".join(f"{part['label']} {part['share_text']}" for part in origins(counted) if part["tokens"])
    return f"Last 5 minutes: {words.percent(rate)} hit rate of {asked} ({split})."


def _facts(facts: EngineFacts, alive: live.Fleet, now: datetime) -> list[tuple[str, str]]:
    running = alive.engines.get(facts.name) if facts.is_own else None
    told = [
        ("State", _state(facts, running, now)),
        ("Kind", "one of our own" if facts.is_own else EngineKind(facts.source.read_as).label),
        ("Models" if len(facts.models) > 1 else "Model", ", ".join(facts.models) or "unknown: its source tells none"),
        ("Last reading", words.ago((now - facts.read_at).total_seconds()) if facts.read_at else "never"),
    ]
    if running is not None:
        told.append(("Requests now", f"{running.requests_running} running, {running.requests_waiting} waiting"))
    if not facts.is_own:
        told.append(("Read from", f"{_place(facts.source)}, source {facts.source.name}"))
    return [*told, ("Read every", words.span(facts.source.interval_seconds))]


def _state(facts: EngineFacts, running: live.LiveEngine | None, now: datetime) -> str:
    state = facts.rows[0].state
    if not facts.is_own and state == SourceState.GONE and facts.source.gone_at is None:
        return f"{state}. Its source is read and does not tell it any more."
    if not facts.is_own:
        return f"{state}. {describe(facts.source, now)}"
    since = f", started {words.ago(now.timestamp() - running.started_at)}" if running and running.started_at else ""
    return state + since


def _place(source: Source) -> str:
    host = urlsplit(source.url).netloc
    return f"series {source.selector} of the Prometheus at {host}" if source.selector else host


def _note(facts: EngineFacts) -> str:
    """What its kind's table says of its numbers."""
    adapter = ADAPTERS.get(facts.source.read_as)
    return adapter.note if adapter else ""


def _alert(alert: Alert, now: datetime) -> dict[str, str]:
    since = alert.firing_at or alert.pending_at
    return {
        "state": alert.state,
        "name": str(alert.rule),
        "summary": alert.summary,
        "ago": words.ago((now - since).total_seconds()),
    }
