"""The one way selectors read buckets: filtered by engine and model, one GROUP BY. Knows no chart."""

from collections.abc import Collection
from typing import Any

from django.db.models import F, QuerySet, Sum

from dashboard.models import Bucket, CacheTier, Series
from dashboard.selectors.period import Period

Metric = Series.Metric
TIER_ORDER = tuple(CacheTier.values)


def buckets(
    period: Period, metrics: Collection[str], *, engine: str | None, model_name: str | None
) -> QuerySet[Bucket]:
    """The period's buckets of these metrics at the period's resolution."""
    return in_period(period).filter(series__in=series_of(metrics, engine=engine, model_name=model_name))


def in_period(period: Period) -> QuerySet[Bucket]:
    return Bucket.objects.filter(resolution=period.resolution, start_at__gte=period.start, start_at__lt=period.end)


def series_of(metrics: Collection[str], *, engine: str | None, model_name: str | None) -> QuerySet[Series]:
    series = Series.objects.filter(metric__in=metrics)
    if engine:
        series = series.filter(engine=engine)
    return series.filter(model_name=model_name) if model_name else series


def sums(rows: QuerySet[Bucket], period: Period, *by: str) -> list[tuple[Any, ...]]:
    """(slot, *by, Σ value) a step and group; `slot` is the step's index in the period."""
    slot = (F("start_at") - period.start) / period.step_seconds
    grouped = rows.annotate(slot=slot).values_list("slot", *by)
    return [(*key, int(total)) for *key, total in grouped.annotate(total=Sum("value"))]


def in_tier_order(tiers: Collection[str]) -> list[str]:
    return [tier for tier in TIER_ORDER if tier in tiers]
