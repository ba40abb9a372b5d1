"""The endpoints of /api/v1. Thin: parameters are read in parameters.py, numbers by selectors."""

import time
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Schema

from dashboard.models import Source, TierChange
from dashboard.read_api import answers
from dashboard.read_api.parameters import (
    BY,
    HistoryAsked,
    Page,
    SeriesAsked,
    SizesAsked,
    Span,
    bad,
    period_of,
    query_of,
    refuse_unknown,
    some,
    wanted_of,
)
from dashboard.selectors.engine_list import engine_rows
from dashboard.selectors.engines import fleet
from dashboard.selectors.metric_facts import METRIC_FACTS
from dashboard.selectors.period import Period
from dashboard.selectors.series_values import TooMuchError, series_values
from dashboard.selectors.sizes_now import size_rows
from dashboard.selectors.source_states import describe, state_of
from dashboard.selectors.tier_costs import TIERS
from dashboard.selectors.totals import totals
from dashboard.views.chart_files import file_answer
from dashboard.views.params import BadParameterError
from dashboard.views.sides import NAMES

router = Router()
_FILES: dict[str, Any] = {"text/csv": {}, "application/vnd.apache.parquet": {}}


def _told(answer: type[Schema]) -> dict[Any, type[Schema]]:
    """An answer, or what every refusal looks like: for the document, errors are made in app.py."""
    return {200: answer, frozenset({400, 401, 403}): answers.Refusal}


@router.get("/sources", response=_told(answers.Sources), summary="Where engines are read from, and how that goes")
def sources(request: HttpRequest, page: Query[Page]) -> dict[str, Any]:
    refuse_unknown(request, Page)
    now = datetime.now(UTC)
    rows, next_offset = some(list(Source.objects.exclude(kind=Source.Kind.REPLAY).order_by("name")), page)
    return {"sources": [_source(row, now) for row in rows], "next_offset": next_offset}


@router.get("/engines", response=_told(answers.Engines), summary="Every engine and model that was ever recorded")
def engines(request: HttpRequest, page: Query[Page]) -> dict[str, Any]:
    refuse_unknown(request, Page)
    rows, next_offset = some(engine_rows(fleet(), datetime.now(UTC)), page)
    return {"engines": [asdict(row) for row in rows], "next_offset": next_offset}


@router.get(
    "/series", response=_told(answers.SeriesTold), by_alias=True, summary="One metric step by step, as exact integers"
)
def series(request: HttpRequest, asked: Query[SeriesAsked]) -> dict[str, Any]:
    refuse_unknown(request, SeriesAsked)
    query, period = period_of(asked, time.time(), asked.step)
    wanted, facts = wanted_of(asked, query), METRIC_FACTS[asked.metric]
    try:
        found = series_values(wanted, period)
    except TooMuchError as error:
        raise bad(str(error)) from None
    return {
        **_stretch(period),
        "metric": asked.metric,
        "unit": facts.unit,
        "kind": "gauge" if facts.is_gauge else "counter",
        "detail_name": facts.detail,
        "series": [
            {**{name: each.names.get(column) for name, column in BY.items()}, "values": each.values} for each in found
        ],
    }


@router.get(
    "/charts/{name}.{kind}",
    summary="Any chart's numbers as a file: csv or parquet",
    response={200: None, frozenset({400, 401, 403}): answers.Refusal},
    openapi_extra={"responses": {200: {"description": "The file, as an attachment.", "content": _FILES}}},
)
def chart_file(request: HttpRequest, name: str, kind: str, asked: Query[Span]) -> HttpResponse:
    """The rows that the page's download has. what-if-* takes a size for each tier, like gpu=2GiB, or time=p95;
    compare takes other=ENGINE, against=before, day or week, or at=MOMENT, for its right side.
    """
    refuse_unknown(request, Span, also=[*TIERS, "time", *NAMES])
    now = time.time()
    try:
        return file_answer(name, kind, query_of(asked, now), request.GET.dict(), now)
    except BadParameterError as error:
        raise bad(str(error)) from None


@router.get("/totals", response=_told(answers.Totals), by_alias=True, summary="A period's sums")
def period_totals(request: HttpRequest, asked: Query[Span]) -> dict[str, Any]:
    refuse_unknown(request, Span)
    query, period = period_of(asked, time.time())
    return {**_stretch(period), **totals(period, engine=query.engine, model_name=query.model_name)}


@router.get("/sizes", response=_told(answers.Sizes), summary="The size of every tier: desired, applied, used")
def sizes(request: HttpRequest, asked: Query[SizesAsked]) -> dict[str, Any]:
    refuse_unknown(request, SizesAsked)
    now = time.time()
    rows, next_offset = some(size_rows(fleet(), now, engine=query_of(asked, now).engine), asked)
    return {"sizes": [asdict(row) for row in rows], "next_offset": next_offset}


@router.get("/sizes/history", response=_told(answers.Changes), summary="Changes of tiers, newest first")
def size_history(request: HttpRequest, asked: Query[HistoryAsked]) -> dict[str, Any]:
    refuse_unknown(request, HistoryAsked)
    changes = TierChange.objects.select_related("author").order_by("-at", "-pk")
    query = query_of(asked, time.time())
    if asked.range or asked.from_:
        start, end = (datetime.fromtimestamp(moment, UTC) for moment in (query.start, query.end))
        changes = changes.filter(at__gte=start, at__lt=end)
    if query.engine:
        changes = changes.filter(engine=query.engine)
    found = list(changes[asked.offset : asked.offset + asked.limit + 1])
    more = asked.offset + asked.limit if len(found) > asked.limit else None
    return {"changes": [_change(row) for row in found[: asked.limit]], "next_offset": more}


def _stretch(period: Period) -> dict[str, int]:
    return {
        "from": period.start,
        "to": period.end,
        "step_seconds": period.step_seconds,
        "resolution_seconds": period.resolution,
    }


def _source(source: Source, now: datetime) -> dict[str, Any]:
    return {
        "name": source.name,
        "kind": source.read_as,
        "state": state_of(source, now).value,
        "state_text": describe(source, now),
        "is_enabled": source.is_enabled,
        "interval_seconds": source.interval_seconds,
        "last_ok_at": source.last_ok_at,
        "last_tried_at": source.last_scraped_at,
        "last_duration_seconds": source.last_duration_seconds,
        "last_num_samples": source.last_num_samples,
    }


def _change(row: TierChange) -> dict[str, Any]:
    return {
        "at": row.at,
        "engine": row.engine,
        "tier": row.cache_tier,
        "action": row.action,
        "old_value": row.old_value,
        "new_value": row.new_value,
        "author": row.author.get_username() if row.author else None,
    }
