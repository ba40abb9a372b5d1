"""Totals are what all engines but replays counted, however that was written, and whatever is removed."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from itertools import count

import pytest
from django.db import connections, transaction
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dashboard.models import Resolution, Series, Source, TotalHead, TotalSeries
from dashboard.selectors.period import Period
from dashboard.selectors.store import Metric, counters_of, series_of, sums, totals_of
from dashboard.services import chunks, removal
from dashboard.services.amounts import Amount
from dashboard.services.head import add_amounts
from dashboard.services.increases import create_series
from dashboard.services.integrity import check
from dashboard.services.recording import Look, book_looks, claim
from dashboard.services.removal import go_on, remove_sources
from dashboard.sources.adapter import Key
from dashboard.sources.reading import Reading
from tests.dashboard.stores import empty
from tests.dashboard.told import moment
from tests.stored import rows, total_rows

pytestmark = pytest.mark.usefixtures("store")

START = 1_800_000_000
PERIOD = Period(START - 7_200, START + 7_200, 60)
FACTS = [("prompt_tokens", ""), ("hit_tokens", "gpu"), ("hit_tokens", "cpu"), ("resident_tokens", "gpu")]
exactly = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
adding = st.lists(
    st.tuples(
        st.integers(0, 3), st.integers(0, 3), st.sampled_from("mn"), st.integers(-7_000, 7_000), st.integers(0, 99)
    ),
    max_size=25,
)


class _Fleet:
    """Three engines, and a replay as the fourth."""

    def __init__(self) -> None:
        empty()
        kinds = ("vllm", "vllm", "embedded", "replay")
        self.sources = [Source.objects.create(name=f"e{number}", kind=kind) for number, kind in enumerate(kinds)]

    def series(self, number: int, fact: int, model_name: str = "m") -> int:
        source, (metric, tier) = self.sources[number], FACTS[fact]
        create_series([(source.pk, source.name, (model_name, metric, tier, ""))])
        return Series.objects.get(source=source, model_name=model_name, metric=metric, cache_tier=tier).pk

    def add(self, *amounts: Amount) -> None:
        with transaction.atomic():
            add_amounts(amounts)


def removed(*sources: Source) -> None:
    remove_sources(sources, clock=timezone.now, seconds=60)
    assert not Source.objects.filter(pk__in=[source.pk for source in sources]).exists()


def naive(resolution: int) -> Counter[tuple[str, str, str, int]]:
    """From the engines' own buckets."""
    found: Counter[tuple[str, str, str, int]] = Counter()
    replays = set(Source.objects.filter(kind="replay").values_list("pk", flat=True))
    for row in rows(resolution=resolution):
        if row.source_id not in replays and row.metric not in Series.GAUGES:
            found[row.model_name, row.metric, row.cache_tier, row.start_at] += row.value
    return found


def totals(resolution: int) -> dict[tuple[str, str, str, int], int]:
    found = total_rows(resolution=resolution)
    return {(row.model_name, row.metric, row.cache_tier, row.start_at): row.value for row in found}


@exactly
@given(adding)
def test_totals_are_the_sums_of_all_engines_counters_at_every_resolution(
    told: list[tuple[int, int, str, int, int]],
) -> None:
    fleet = _Fleet()
    fleet.add(
        *(Amount(fleet.series(number, fact, model), START + at, value) for number, fact, model, at, value in told)
    )
    assert all(totals(resolution) == naive(resolution) for resolution in Resolution.values)
    check(now=moment(START))
    metrics = (Metric.PROMPT_TOKENS, Metric.HIT_TOKENS)
    for model_name in (None, "m", "n"):
        each = series_of(metrics, engine=None, model_name=model_name)
        together = counters_of(metrics, engine=None, model_name=model_name)
        assert sums(each, PERIOD, "metric", "cache_tier") == sums(together, PERIOD, "metric", "cache_tier")
        assert totals_of(each, PERIOD, "metric") == totals_of(together, PERIOD, "metric")


def test_a_removed_source_takes_its_part_of_the_totals_along_and_nothing_else() -> None:
    fleet = _Fleet()
    fleet.add(*(Amount(fleet.series(number, 0), START + 40 * step, 5) for number in range(3) for step in range(9)))
    fleet.add(Amount(fleet.series(1, 1, "only there"), START, 7))
    removed(fleet.sources[1])
    assert sum(totals(86_400).values()) == 2 * 9 * 5
    assert all(totals(resolution) == naive(resolution) for resolution in Resolution.values)
    check(now=moment(START))
    assert list(TotalSeries.objects.values_list("model_name", flat=True)) == ["m"]
    removed(fleet.sources[0], fleet.sources[2])
    assert not total_rows()


def test_a_look_or_an_import_that_is_under_way_writes_nothing_to_a_source_that_is_being_removed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fleet, now = _Fleet(), timezone.now()
    gone = fleet.sources[1]
    fleet.add(*(Amount(fleet.series(number, 0), START, 5) for number in (0, 1)))
    stretch = {"start_at": moment(START), "end_at": now, "cursor_at": moment(START), "claimed_until": now}
    gone.backfills.create(url="http://prometheus:9090", selector="{}", **stretch)
    claimed = claim(gone.pk, now)
    assert claimed is not None
    counters = {Key(gone.name, "m", "prompt_tokens"): 9}
    reading = Reading(gone.name, "", now, starts_from_zero=True, computed="told", counters=counters)
    take_away = chunks.take_away

    def meanwhile(series_id: int, total_id: int) -> None:
        take_away(series_id, total_id)
        assert not gone.backfills.exists()
        assert book_looks([(claimed, Look(now, 0.1, (reading,)))]) == []

    monkeypatch.setattr(removal, "take_away", meanwhile)
    removed(gone)
    assert totals(86_400) == naive(86_400)
    assert sum(totals(86_400).values()) == 5


def test_a_removal_that_takes_long_is_gone_on_with_and_nothing_is_taken_away_twice() -> None:
    fleet = _Fleet()
    fleet.add(*(Amount(fleet.series(number, fact), START, 5) for number in range(3) for fact in range(3)))
    now = timezone.now()
    ticks = (now + timedelta(seconds=number) for number in count())
    remove_sources(fleet.sources[:2], clock=lambda: next(ticks), seconds=3.5)
    half_gone = Source.objects.exclude(removed_at=None).get(name="e0")
    assert 0 < half_gone.series.count() < 3
    assert totals(60) == naive(60)
    turns = 0
    while not go_on(clock=lambda: next(ticks), seconds=4.5):
        turns += 1
        assert turns < 9
        assert totals(60) == naive(60)
    go_on(clock=timezone.now, seconds=60)
    assert set(Source.objects.values_list("name", flat=True)) == {"e2", "e3"}
    assert totals(60) == naive(60)
    check(now=moment(START))


def test_a_series_that_is_being_packed_is_removed_after_that() -> None:
    """A replay's has no total whose rows its removal would wait for."""
    fleet, now = _Fleet(), moment(START + 3_600)
    replayed = fleet.series(3, 0)
    fleet.add(Amount(replayed, START, 5))

    def remove() -> None:
        try:
            with transaction.atomic():
                removal.remove_series([replayed])
        finally:
            connections["default"].close()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            chunks.lock(Series, [replayed])
            removed = pool.submit(remove)
            with suppress(TimeoutError):
                removed.result(0.5)
            chunks.move(Series, [replayed], START + 60, dict.fromkeys(Resolution.values, 0))
        removed.result()
    check(now=now)
    assert not rows()


def test_many_writers_at_once_lose_nothing_and_never_wait_for_each_other_for_good() -> None:
    fleet = _Fleet()
    ids = {number: [fleet.series(number, fact) for fact in (2, 1, 0)] for number in range(3)}

    def write(number: int) -> None:
        try:
            for step in range(10):
                fleet.add(*(Amount(pk, START + step, 1) for pk in (ids[number], ids[number][::-1])[step % 2]))
        finally:
            connections["default"].close()

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(write, range(3)))
    assert sum(totals(86_400).values()) == 3 * 3 * 10
    check(now=moment(START))


def test_a_total_that_is_not_the_sum_is_found() -> None:
    fleet = _Fleet()
    fleet.add(Amount(fleet.series(0, 0), START, 5))
    TotalHead.objects.update(value=6)
    with pytest.raises(AssertionError, match="Totals are not what engines' buckets come to"):
        check(now=moment(START))
