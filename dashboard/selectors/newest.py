"""The newest readings of gauges, engine by engine and tier by tier. Reads only.

One query for all sources that are read at least every few minutes, one more for each longer interval that there is.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from django.db.models import QuerySet

from dashboard.models import Resolution, Series
from dashboard.selectors.lookback import sources_by_lookback
from dashboard.selectors.readable import of_readable
from dashboard.selectors.runs import newest
from dashboard.selectors.store import series_of

_NEWEST_SECONDS = 600  # what was read longer ago is not now, unless its source is read more rarely

Reading = Mapping[str, int]  # metric → value
Told = tuple[str, str, str, int]  # engine, tier, metric, value


def newest_readings(
    metrics: Collection[str],
    now: float,
    *,
    engine: str | None = None,
    tier: str | None = None,
    unread: set[int] | None = None,
) -> dict[tuple[str, str], Reading]:
    """(engine, tier) → the mean of the newest minute of the last ten, rounded; models added up.

    Of a source that is read less often than every 200 s: of its last three intervals. `unread`: gets the sources that
    cannot be read; without it one raises ChunkError.
    """
    gauges = series_of(metrics, engine=engine, model_name=None)
    if tier is not None:
        gauges = gauges.filter(cache_tier=tier)
    found: dict[tuple[str, str], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for seconds, sources in sources_by_lookback(_NEWEST_SECONDS).items():

        def read(of: Sequence[int], seconds: int = seconds) -> list[Told]:
            return _told(gauges.filter(source__in=of), now, seconds)

        for told in [read(sources)] if unread is None else of_readable(sources, read, unread):
            for name, of_tier, metric, value in told:
                found[name, of_tier][metric] += value
    return {place: dict(told) for place, told in found.items()}


def _told(gauges: QuerySet[Series], now: float, seconds: int) -> list[Told]:
    rows = gauges.values_list("pk", "engine", "cache_tier", "metric")
    names = {pk: (engine, tier, metric) for pk, engine, tier, metric in rows}
    return [(*names[pk], value) for pk, value in _newest(names, now, seconds).items()]


def _newest(series_ids: Collection[int], now: float, seconds: int) -> dict[int, int]:
    minute = int(Resolution.MINUTE)
    end = (int(now) // minute + 1) * minute
    start = end - -(-seconds // minute) * minute
    return {pk: round(mean) for pk, mean in newest(series_ids, minute, start=start, end=end).items()}
