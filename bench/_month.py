"""Fills a store with a month of a fleet as the recorder and the retention would have left it. Measures nothing.

Rows are reckoned and packed: through the recorder a month of 500 sources takes hours. `differences` shows on a
stretch of two hours that they are what the recorder leaves, to the row.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import numpy as np
from django.db import connection
from django.utils import timezone

from bench._origins import FACTS, STEP, Origins
from bench._packed import Row, store
from dashboard.models import Resolution, Series, Source
from dashboard.services.chunks import settle
from dashboard.services.increases import create_series
from dashboard.services.integrity import buckets_of
from dashboard.services.recording import Look, book_looks, claim_many
from dashboard.services.removal import remove_sources
from dashboard.sources.detection import read
from dashboard.sources.reading import readings

DAY = 86_400
DAYS = 30
_LOOKS = 2 * 3_600 // STEP


def sources_of(num: int, url: str = "http://engines.invalid") -> list[Source]:
    return Source.objects.bulk_create(
        Source(name=f"e{number}", kind="tierscope", url=f"{url}/{number}/metrics", interval_seconds=STEP)
        for number in range(num)
    )


def fill(sources: Sequence[Source], start: int, spans: dict[int, int]) -> int:
    """From `start` on, a scrape every ten seconds; `spans`: resolution → for how long before the end it is kept."""
    series = _series(sources)
    end = start + DAYS * DAY
    num_rows = store(
        row
        for number, source in enumerate(sources)
        for resolution, seconds in spans.items()
        for row in rows_of(number, series[source.pk], start, end, resolution, max(start, end - seconds))
    )
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    return num_rows


def rows_of(number: int, series: list[int], start: int, end: int, resolution: int, since: int) -> Iterator[Row]:
    """Of one engine: increases of scrapes after `start` lie five seconds before them. What did not move has no row."""
    since = since // DAY * DAY
    first = max(start, since)
    scrapes = np.arange((first - start) // STEP, (end - start) // STEP + 1)
    grown = np.diff(Origins(number).counters(scrapes), axis=0)
    values = np.concatenate([np.ones((len(grown), 1), np.int64), grown], axis=1)
    slots = np.arange(first, end, STEP) // resolution
    edges = np.flatnonzero(np.diff(slots, prepend=-1))
    starts = (slots[edges] * resolution).tolist()
    sums = np.add.reduceat(values, edges)
    counts = np.add.reduceat((values > 0).astype(np.int64), edges)
    for column, series_id in enumerate(series):
        for at, value, num in zip(starts, sums[:, column].tolist(), counts[:, column].tolist(), strict=True):
            if num:
                yield series_id, resolution, at, value, num


def _series(sources: Sequence[Source]) -> dict[int, list[int]]:
    """Source → its series: how often it was read, then what it tells."""
    facts = [("m", "scrapes", "", ""), *(("m", metric, tier, "") for metric, tier, _ in FACTS)]
    create_series((source.pk, f"{source.name}/0", columns) for source in sources for columns in facts)
    found: dict[int, list[int]] = {source.pk: [0] * len(facts) for source in sources}
    rows = Series.objects.filter(source__in=found)
    for row in rows:
        fact = (row.model_name, row.metric, row.cache_tier, row.detail)
        found[row.source_id][facts.index(fact)] = row.pk
    return found


def differences(start: int) -> int:
    """Rows of two engines that are not what the recorder leaves after reading them as often; of all resolutions."""
    sources = sources_of(2)
    for scrape in range(_LOOKS + 1):
        at = datetime.fromtimestamp(start + STEP * scrape, UTC)
        Source.objects.update(due_at=at)
        looks = {source.pk: _look(number, source, scrape, at) for number, source in enumerate(sources)}
        book_looks([(source, looks[source.pk]) for source in claim_many(looks, at)])
    series = _series(sources)
    reckoned = {
        row
        for number, source in enumerate(sources)
        for resolution in Resolution.values
        for row in rows_of(number, series[source.pk], start, start + _LOOKS * STEP, resolution, start)
    }
    # The first look is only what increases are measured from, but it is one.
    scrapes = set(Series.objects.filter(metric="scrapes").values_list("pk", flat=True))
    settle(now=datetime.fromtimestamp(start + DAY, UTC))
    recorded = {
        (pk, resolution, at, *sums)
        for pk in Series.objects.values_list("pk", flat=True)
        for resolution, buckets in buckets_of([pk]).items()
        for at, sums in buckets.items()
    }
    told = {row for row in recorded ^ reckoned if row[0] not in scrapes}
    remove_sources(sources, clock=timezone.now, seconds=60)
    return len(told)


def _look(number: int, source: Source, scrape: int, at: datetime) -> Look:
    adapted = read(Origins(number).text(scrape, "0"), "tierscope")
    return Look(at, 0.0, tuple(readings(adapted, at=at, prefix=source.name)))
