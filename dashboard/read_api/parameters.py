"""What a program may ask for, as the document shows it. A name that is not here is refused: a filter that is
misspelled would answer with other numbers than were asked for.
"""

from collections.abc import Collection
from typing import Any

from django.http import HttpRequest
from ninja import Field, Schema

from dashboard.api.errors import ApiError
from dashboard.selectors.metric_facts import METRIC_FACTS
from dashboard.selectors.period import Period, PeriodError, between, last
from dashboard.selectors.series_values import Wanted
from dashboard.selectors.stepped import stepped
from dashboard.views.params import RANGES, BadParameterError, Query, read_query

MOST_ROWS = 1_000
_SHOWN = 40
BY = {"engine": "engine", "model": "model_name", "tier": "cache_tier", "detail": "detail"}


class Page(Schema):
    limit: int = Field(500, ge=1, le=MOST_ROWS, description="Rows of one answer, at most.")
    offset: int = Field(0, ge=0, le=1_000_000, description="Rows to leave out first: the last answer's `next_offset`.")


class Filters(Schema):
    engine: str | None = Field(None, description="Only this engine, by its whole name; all engines without it.")
    model: str | None = Field(None, description="Only this model, by its whole name.")


class Span(Filters):
    range: str | None = Field(
        None, description=f"The time up to now: one of {', '.join(RANGES)}; 15m without a period."
    )
    from_: str | None = Field(None, alias="from", description="Unix seconds, or ISO 8601 with a zone; with `to`.")
    to: str | None = Field(None, description="Unix seconds, or ISO 8601 with a zone; exclusive, now at the latest.")


class SeriesAsked(Span):
    metric: str = Field(description=f"One of {', '.join(METRIC_FACTS)}.")
    tier: str | None = Field(None, description="Only this tier: gpu, cpu, disk, remote or unattributed.")
    tenant: str | None = Field(None, description="Only this tenant, for the metrics tenant_*.")
    detail: str | None = Field(None, description="Only this detail; what it means, `detail_name` of the answer says.")
    by: str = Field(
        "tier,detail", description="What is told apart, by commas: engine, model, tier, detail. Else summed."
    )
    step: int | None = Field(
        None, ge=10, le=31_536_000, description="Seconds of one step, a multiple of 10; without it what charts have."
    )


class HistoryAsked(Span, Page):
    """Without a period: all of it."""


class SizesAsked(Page):
    engine: str | None = Field(None, description="Only this engine, by its whole name.")


def refuse_unknown(request: HttpRequest, asked: type[Schema], also: Collection[str] = ()) -> None:
    known = {field.alias or name for name, field in asked.model_fields.items()} | set(also)
    for name, values in request.GET.lists():
        if name not in known:
            expected = f"expected {', '.join(sorted(known))}" if known else "this address takes none"
            raise bad(f"There is no parameter “{name[:_SHOWN]}” here; {expected}.", name[:_SHOWN])
        if len(values) > 1:
            raise bad(f"{name} is there {len(values)} times; expected once.", name)


def bad(sentence: str, param: str | None = None) -> ApiError:
    return ApiError(400, sentence, code="invalid_value", param=param)


def query_of(asked: Schema, now: float) -> Query:
    """Its period, engine and model. Raises ApiError 400."""
    params = {name: str(value) for name, value in asked.model_dump(by_alias=True).items() if value is not None}
    try:
        return read_query(params, now, ends=("from", "to"))
    except BadParameterError as error:
        raise bad(str(error)) from None


def period_of(span: Span, now: float, step: int | None = None) -> tuple[Query, Period]:
    """The stored steps of the question. Raises ApiError 400."""
    query = query_of(span, now)
    try:
        if step is not None:
            return query, stepped(query.start, query.end, step, now=now)
        if query.range_name:
            return query, last(RANGES[query.range_name], now=now)
        return query, between(query.start, query.end, now=now)
    except PeriodError as error:
        raise bad(str(error)) from None


def wanted_of(asked: SeriesAsked, query: Query) -> Wanted:
    facts = METRIC_FACTS.get(asked.metric)
    if facts is None:
        raise bad(f"There is no metric “{asked.metric[:_SHOWN]}”; there are {', '.join(METRIC_FACTS)}.", "metric")
    if asked.tenant is not None and not facts.is_by_tenant:
        raise bad(f"{asked.metric} is not told by tenant; tenant_prompt_tokens and its like are.", "tenant")
    for name in ("tier", "tenant", "detail"):
        if not (getattr(asked, name) or "").isprintable():
            raise bad(f"{name} has to be printable characters.", name)
    if asked.tenant is not None and asked.detail is not None:
        raise bad("tenant and detail are the same for this metric; give one.", "detail")
    return Wanted(
        asked.metric,
        by=_columns(asked.by),
        engine=query.engine,
        model_name=query.model_name,
        tier=asked.tier,
        detail=asked.detail if asked.tenant is None else asked.tenant,
    )


def _columns(by: str) -> tuple[str, ...]:
    """In one order, whatever order was asked for."""
    named = {name.strip() for name in by.split(",")} - {""}
    if unknown := named - set(BY):
        raise bad(f"by names “{min(unknown)[:_SHOWN]}”; expected some of {', '.join(BY)}, by commas.", "by")
    return tuple(column for name, column in BY.items() if name in named)


def some(rows: list[Any], page: Page) -> tuple[list[Any], int | None]:
    """The page's rows, and where the next page begins; None after the last one."""
    end = page.offset + page.limit
    return rows[page.offset : end], end if end < len(rows) else None
