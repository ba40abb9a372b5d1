"""What was added is there, once, wherever it lies: while it is in the head, while it moves, and packed."""

import random
import sqlite3
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from django.db import connection, connections, transaction
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dashboard.chunks import ChunkError
from dashboard.models import Chunk, Head, Resolution, Retention, Series, TotalHead, TotalSeries
from dashboard.selectors.runs import Counted, newest, runs
from dashboard.services import chunks, head
from dashboard.services.amounts import Amount
from dashboard.services.increases import create_series
from dashboard.services.integrity import check
from dashboard.services.totals import totals_of
from tests.dashboard.amounts import AmountStore
from tests.dashboard.stores import in_a_thread
from tests.dashboard.told import moment
from tests.stored import Row, rows, total_rows

pytestmark = pytest.mark.usefixtures("store")

START = 1_800_000_000
OLDEST = dict.fromkeys(Resolution.values, 0)
exactly = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
# (series, seconds after START, value): within an hour, over the edges of chunks, or anywhere in two years.
amounts = st.tuples(
    st.integers(0, 2),
    st.integers(0, 3_600) | st.sampled_from([-10, -1, 21_599, 21_600, 15 * 86_400]) | st.integers(-(10**7), 5 * 10**7),
    st.integers(-9_999, 9_999),
)
steps = st.lists(
    st.tuples(st.just("head"), amounts)
    | st.tuples(st.just("chunks"), amounts)
    | st.tuples(st.just("settle"), st.none()),
    max_size=20,
)


def _ids(store: AmountStore) -> list[int]:
    return [store.series(("prompt_tokens", "", ""), engine).pk for engine in "abc"]


@exactly
@given(steps)
def test_every_resolution_has_what_was_added_in_any_order_and_by_any_way(
    told: list[tuple[str, tuple[int, ...]]],
) -> None:
    ids = _ids(AmountStore())
    Retention.objects.create(ten_seconds_hours=10**5, minutes_days=10**4, hours_days=10**4)
    wanted: Counter[tuple[int, int]] = Counter()
    for way, amount in told:
        with transaction.atomic():
            if way == "settle":
                chunks.settle(now=moment(START + 10**8))
                continue
            number, after, value = amount
            one = Amount(ids[number], START + after, value)
            if way == "head":
                head.add(head.sums_of([one]))
            else:
                chunks.add(chunks.sums_of([one], OLDEST))
        for resolution in Resolution.values:
            wanted[resolution, one.at - one.at % resolution] += value
    found: Counter[tuple[int, int]] = Counter()
    for row in rows():
        found[row.resolution, row.start_at] += row.value
    assert {place: value for place, value in found.items() if value} == {
        place: value for place, value in wanted.items() if value
    }
    assert {(row.resolution, row.start_at): row.value for row in total_rows() if row.value} == {
        place: value for place, value in wanted.items() if value
    }
    check(now=moment(START))


def test_what_is_read_is_the_same_before_and_after_it_is_packed() -> None:
    ids, rng = _ids(AmountStore()), random.Random(4)
    told = [Amount(rng.choice(ids), START + rng.randrange(9_000), rng.randrange(99)) for _ in range(300)]
    with transaction.atomic():
        head.add_amounts(told)

    def read() -> list[Counter[tuple[int, int]]]:
        found = []
        for resolution in Resolution.values:
            start, end = START // resolution * resolution, (START // resolution + 700) * resolution
            sums: Counter[tuple[int, int]] = Counter()
            for run in runs(ids, resolution, start=start, end=end):
                for place, value in enumerate(run.values):
                    sums[run.series_id, run.start_at + place * resolution] += value
            found.append(+sums)
        return found

    before, newest_before = read(), newest(ids, 60)
    assert chunks.settle(now=moment(START + 86_400)) == 4, "three series and their total"
    assert not Head.objects.exists()
    assert not TotalHead.objects.exists()
    assert (read(), newest(ids, 60)) == (before, newest_before)


def test_what_came_lately_stays_in_the_head() -> None:
    (one, *_) = _ids(AmountStore())
    now = START + 1_000
    with transaction.atomic():
        head.add_amounts(Amount(one, at, 1) for at in (now - 599, now - 300, now))
    assert chunks.settle(now=moment(now)) == 0, "not before it pays"
    assert chunks.settle(now=moment(now + 30)) == 2
    assert list(Head.objects.values_list("start_at", flat=True)) == [now]


def test_a_head_of_days_is_moved_an_hour_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    ids, turns = _ids(AmountStore()), []
    with transaction.atomic():
        head.add_amounts(Amount(pk, START + 60 * step, 1) for pk in ids for step in range(3 * 1_440))
    own = chunks.move

    def move(of: Counted, there: set[int], until: int, oldest: dict[int, int]) -> None:
        before = Head.objects.count()
        own(of, there, until, oldest)
        if of is Series:
            turns.append(before - Head.objects.count())

    monkeypatch.setattr(chunks, "move", move)
    chunks.settle(now=moment(START + 3 * 86_400 + 60))
    assert turns == [3 * 60] * 72
    assert not Head.objects.exists()
    check(now=moment(START + 3 * 86_400))


def test_what_is_too_old_for_a_resolution_is_left_out_of_it_only() -> None:
    (one, *_) = _ids(AmountStore())
    with transaction.atomic():
        head.add_amounts([Amount(one, START - 30 * 86_400, 1), Amount(one, START - 3 * 86_400, 1)])
    chunks.settle(now=moment(START))
    assert Counter(row.resolution for row in rows()) == {60: 1, 3_600: 2, 86_400: 2}


def test_a_chunk_that_cannot_be_read_keeps_no_other_series_in_the_head(caplog: pytest.LogCaptureFixture) -> None:
    ids = _ids(AmountStore())
    with transaction.atomic():
        chunks.add(chunks.sums_of([Amount(ids[1], START, 1)], OLDEST))
        head.add_amounts(Amount(pk, START, 7) for pk in ids)
    Chunk.objects.filter(resolution=60).update(packed=b"\x01\x00")
    assert chunks.settle(now=moment(START + 3_600)) == 3, "two series and the total"
    assert list(Head.objects.values_list("series_id", "value")) == [(ids[1], 7)], "nothing of it is lost"
    place = f"series_id = {ids[1]} AND resolution = 60 AND start_at = {START - START % 21_600}"
    assert place in caplog.text
    with pytest.raises(ChunkError, match=place):
        list(runs(ids, 60))
    with pytest.raises(AssertionError, match=place):
        check(now=moment(START))
    Chunk.objects.filter(resolution=60, series=ids[1]).delete()
    assert chunks.settle(now=moment(START + 3_600)) == 1


def test_others_get_their_turn_to_write_between_two_portions_on_sqlite(store: str) -> None:
    source = AmountStore().source
    create_series((source.pk, "e", ("m", "prompt_tokens", "", str(number))) for number in range(101))
    with transaction.atomic():
        head.add_amounts(Amount(pk, START, 1) for pk in Series.objects.values_list("pk", flat=True))
    rests: list[bool] = []
    assert chunks.settle(now=moment(START + 3_600), rest=lambda _: rests.append(connection.in_atomic_block)) == 202
    assert rests == ([False, False] if store == "sqlite" else [])


def test_late_readings_of_a_total_and_its_packing_take_its_rows_in_one_order(store: str) -> None:
    ids = _ids(AmountStore())
    for second in (20, 10):
        with transaction.atomic():
            head.add_amounts([Amount(ids[0], START + second, 1)])

    def pack() -> None:
        try:
            with transaction.atomic():
                if store == "postgresql":  # a plan that it may choose, then rows come as they were written
                    with connection.cursor() as cursor:
                        cursor.execute("SET LOCAL enable_indexscan = off; SET LOCAL enable_bitmapscan = off")
                chunks.move(TotalSeries, chunks.lock(TotalSeries, totals), START + 60, OLDEST)
        finally:
            connections["default"].close()

    totals = list(TotalSeries.objects.values_list("pk", flat=True))
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            head.add_amounts([Amount(ids[1], START + 10, 1)])
            packed = pool.submit(pack)
            with suppress(TimeoutError):
                packed.result(0.5)
            head.add_amounts([Amount(ids[1], START + 20, 1)])
        packed.result()
    check(now=moment(START))


def test_a_chunk_that_has_nothing_left_goes() -> None:
    (one, *_) = _ids(AmountStore())
    for sign in (1, -1):
        with transaction.atomic():
            chunks.add(chunks.sums_of([Amount(one, START, sign * 5, sign)], OLDEST))
    assert not Chunk.objects.exists()


def test_amounts_of_a_series_that_is_gone_are_dropped() -> None:
    (one, *_) = _ids(AmountStore())
    sums = chunks.sums_of([Amount(one, START, 5)], OLDEST)
    Series.objects.filter(pk=one).delete()
    with transaction.atomic():
        chunks.add(sums)
    check(now=moment(START))


def test_what_was_added_to_a_series_that_is_gone_is_forgotten() -> None:
    ids = _ids(AmountStore())
    with transaction.atomic():
        head.add_amounts(Amount(pk, START, 5) for pk in ids[:2])
        chunks.add(chunks.sums_of([Amount(ids[0], START - 3_600, 7)], OLDEST))
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM dashboard_series WHERE id = %s", [ids[0]])
    chunks.settle(now=moment(START + 3_600))
    assert not Head.objects.exists()
    assert set(Chunk.objects.values_list("series_id", flat=True)) == {ids[1]}


def test_more_series_than_one_statement_takes_are_read_locked_and_looked_up() -> None:
    (one, *_) = _ids(AmountStore())
    with transaction.atomic():
        head.add_amounts([Amount(one, START, 5)])
    if connection.vendor == "sqlite":  # some builds take more
        connection.connection.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 32_766)
    many = [*range(10**9, 10**9 + 60_000), one]
    assert [run.series_id for run in runs(many, 3_600)] == [one]
    assert list(totals_of(many)) == [one]
    with transaction.atomic():
        assert chunks.lock(Series, many) == {one}


def test_many_that_add_pack_and_import_at_once_lose_and_double_nothing() -> None:
    ids, now = _ids(AmountStore()), timezone.now()
    start = int(now.timestamp()) - 3_600
    seconds = range(0, 1_200, 10)

    def add() -> None:
        for second in seconds:
            with transaction.atomic():
                head.add_amounts(Amount(pk, start + second, 1) for pk in ids)

    def import_() -> None:
        for second in seconds[::4]:
            with transaction.atomic():
                chunks.add(chunks.sums_of([Amount(pk, start + second, 1_000) for pk in ids], OLDEST))

    def pack() -> None:
        for _ in range(25):
            chunks.settle(now=now)

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(in_a_thread, (add, pack, import_, pack, add)))
    expected = len(ids) * (2 * len(seconds) + 1_000 * len(seconds[::4]))
    for found in (rows(), total_rows()):
        assert {resolution: _sum(found, resolution) for resolution in Resolution.values} == dict.fromkeys(
            Resolution.values, expected
        )
    check(now=now)


def _sum(found: list[Row], resolution: int) -> int:
    return sum(row.value for row in found if row.resolution == resolution)
