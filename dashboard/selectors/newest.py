"""The newest readings of gauges, engine by engine and tier by tier: one query for all of them. Reads only."""

from collections import defaultdict
from collections.abc import Collection, Mapping

from dashboard.models import Bucket
from dashboard.selectors.store import series_of

_NEWEST_SECONDS = 600  # what was read longer ago is not now

Reading = Mapping[str, int]  # metric → value


def newest_readings(
    metrics: Collection[str], now: float, *, engine: str | None = None, tier: str | None = None
) -> dict[tuple[str, str], Reading]:
    """(engine, tier) → the mean of the newest minute of the last ten, rounded; models added up."""
    gauges = series_of(metrics, engine=engine, model_name=None)
    if tier is not None:
        gauges = gauges.filter(cache_tier=tier)
    newest = _newest(list(gauges.values_list("pk", flat=True)), now)
    found: dict[tuple[str, str], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for pk, name, of_tier, metric in gauges.values_list("pk", "engine", "cache_tier", "metric"):
        if pk in newest:
            found[name, of_tier][metric] += newest[pk]
    return {place: dict(told) for place, told in found.items()}


def _newest(series_ids: list[int], now: float) -> dict[int, int]:
    rows = Bucket.objects.filter(
        series__in=series_ids,
        resolution=Bucket.Resolution.MINUTE,
        start_at__gt=int(now) - _NEWEST_SECONDS,
        start_at__lte=int(now),
        num_samples__gt=0,
    )
    told: dict[int, int] = {}
    for pk, value, num_samples in rows.order_by("start_at").values_list("series_id", "value", "num_samples"):
        told[pk] = round(value / num_samples)
    return told
