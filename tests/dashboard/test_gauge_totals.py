"""What all engines' gauges come to is what reading every one of them says, however it was written or removed."""

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import pytest
from django.core.management import call_command
from django.db import transaction
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dashboard.chunks import NUM_BUCKETS, Buckets, pack, span_seconds
from dashboard.gauge_steps import RESOLUTION_OF, STEPS, mean
from dashboard.models import Chunk, Resolution, Retention, Series, Source, TotalChunk
from dashboard.selectors import gauges
from dashboard.selectors import period as periods
from dashboard.selectors.gauges import gauges_of, means
from dashboard.selectors.period import Period
from dashboard.services import chunks, head
from dashboard.services.amounts import Amount
from dashboard.services.increases import create_series
from dashboard.services.integrity import check
from dashboard.services.removal import remove_sources
from dashboard.services.retention import expire
from tests.dashboard.stores import empty, in_a_thread
from tests.dashboard.told import moment
from tests.stored import Row, rows, total_rows

pytestmark = pytest.mark.usefixtures("store")

DAY = 86_400
START = 1_800_000_000 // (360 * DAY) * (360 * DAY) + 100 * DAY
OLDEST = dict.fromkeys(Resolution.values, 0)
FACTS = (("resident_tokens", "gpu"), ("resident_tokens", "cpu"), ("capacity_tokens", "gpu"))
exactly = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
Steps = dict[tuple[str, ...], dict[int, int]]  # metric and tier → slot → value
Told = tuple[int, int, str, int, int]  # engine, fact, model, seconds after START, value
some = st.tuples(
    st.integers(0, 3),
    st.integers(0, 2),
    st.sampled_from("mn"),
    st.integers(0, 7_200) | st.sampled_from([-1, 21_599, 21_600, 15 * DAY]) | st.integers(-(10**7), 2 * 10**7),
    st.integers(0, 2**40),
)
doings = st.lists(
    st.tuples(st.sampled_from(["head", "chunks"]), st.lists(some, min_size=1, max_size=9))
    | st.tuples(st.sampled_from(["settle", "remove"]), st.just([])),
    max_size=9,
)


class Fleet:
    """Three engines, and a replay as the fourth."""

    def __init__(self) -> None:
        empty()
        Retention.objects.create(ten_seconds_hours=10**5, minutes_days=10**4, hours_days=10**4)
        self.sources = [self._new(number, kind) for number, kind in enumerate(("vllm", "vllm", "embedded", "replay"))]

    def _new(self, number: int, kind: str) -> Source:
        return Source.objects.create(name=f"e{number}", kind=kind)

    def amount(self, number: int, fact: int, model_name: str, after: int, value: int) -> Amount:
        source, (metric, tier) = self.sources[number], FACTS[fact]
        create_series([(source.pk, source.name, (model_name, metric, tier, ""))])
        wanted = Series.objects.filter(source=source, model_name=model_name, metric=metric, cache_tier=tier)
        return Amount(wanted.get().pk, START + after, value)

    def stored(self) -> list[Row]:
        replays = set(Source.objects.filter(kind="replay").values_list("pk", flat=True))
        return [row for row in rows() if row.source_id not in replays]

    def do(self, what: str, told: list[Told]) -> None:
        amounts = [self.amount(*each) for each in told]
        if what == "settle":
            chunks.settle(now=moment(START + 10**8))
        elif what == "remove":
            remove_sources([self.sources[1]], clock=timezone.now, seconds=60)
            self.sources[1] = self._new(1, "vllm")
        else:
            with transaction.atomic():
                if what == "head":
                    head.add_amounts(amounts)
                else:
                    chunks.add(chunks.sums_of(amounts, OLDEST))


def naive(stored: list[Row], period: Period, model_name: str | None = None) -> Steps:
    """From every bucket of every engine."""
    of_series: dict[tuple[str, str, int, int, str], list[int]] = defaultdict(lambda: [0, 0])
    for row in stored:
        if row.resolution == period.resolution and period.start <= row.start_at < period.end:
            slot = (row.start_at - period.start) // period.step_seconds
            sums = of_series[row.metric, row.cache_tier, slot, row.source_id, row.model_name]
            sums[0] += row.value
            sums[1] += row.num_samples
    found: Steps = defaultdict(dict)
    for (metric, tier, slot, _, model), (value, num_samples) in of_series.items():
        if model_name in (None, model):
            found[metric, tier][slot] = found[metric, tier].get(slot, 0) + round(value / num_samples)
    return dict(found)


def told(period: Period, model_name: str | None = None) -> Steps:
    metrics = ("resident_tokens", "capacity_tokens")
    found = means(gauges_of(metrics, period, engine=None, model_name=model_name), period, "metric", "cache_tier")
    return {key: of_key for key, of_key in found.items() if of_key}


def around(step: int, first: int = -400, end: int = 400) -> Period:
    start = START // step * step
    return Period(start + max(first, -(start // step)) * step, start + end * step, step)


def test_every_step_of_a_chart_but_weeks_has_totals() -> None:
    assert set(RESOLUTION_OF) == {step for step in periods._STEPS if step != 7 * DAY}
    for resolution, steps in STEPS.items():
        for step in steps:
            assert Period(0, step, step).resolution == resolution
            assert span_seconds(resolution) % step == 0


@exactly
@given(doings)
def test_totals_are_the_sums_of_engines_means_in_every_step_whatever_was_done(
    done: list[tuple[str, list[Told]]],
) -> None:
    fleet = Fleet()
    for what, amounts in done:
        fleet.do(what, amounts)
        stored = fleet.stored()
        for step in (20, 60, 21_600):
            assert told(around(step)) == naive(stored, around(step))
    stored = fleet.stored()
    for step in (*RESOLUTION_OF, 40, 7 * DAY):
        assert told(around(step)) == naive(stored, around(step))
        assert told(around(step, -1, 2), "m") == naive(stored, around(step, -1, 2), "m")
    check(now=moment(START))


def test_a_late_reading_changes_the_step_it_belongs_to_and_no_other() -> None:
    fleet = Fleet()
    fleet.do("head", [(number, 0, "m", after, 100) for number in (0, 1) for after in range(0, 3_600, 10)])
    fleet.do("settle", [])
    fleet.do("head", [(0, 0, "m", 1_800, 1_000), (1, 0, "m", 3_600, 300)])
    period = around(600, 0, 7)
    late = round((60 * 100 + 1_000) / 61) + 100
    assert told(period)["resident_tokens", "gpu"] == {**dict.fromkeys(range(6), 200), 3: late, 6: 300}


@pytest.mark.parametrize(
    ("imported", "has_all_read"), [((-3_000, 590), False), ((-3_000, 601), True), ((-3_000, 3_600), True)]
)
def test_all_is_read_only_where_something_is_packed_after_what_the_head_begins_with(
    imported: tuple[int, ...], has_all_read: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = Fleet()
    fleet.do("chunks", [(0, 0, "m", after, 10) for after in imported])
    fleet.do("head", [(number, 0, "m", after, 100 + after) for number in (0, 1) for after in range(0, 1_200, 7)])
    looks: list[int] = []
    own = gauges._of_series

    def of_series(names: dict[int, tuple[str, ...]], period: Period) -> Steps:
        looks.append(len(names))
        return own(names, period)

    monkeypatch.setattr(gauges, "_of_series", of_series)
    assert told(around(600)) == naive(fleet.stored(), around(600))
    assert looks == ([2] if has_all_read else [])


@given(st.integers(0, 2**60), st.integers(1, 9_000))
def test_a_mean_is_the_nearest_whole_number_and_of_two_the_even_one(value: int, num_samples: int) -> None:
    assert mean(value, num_samples) == round(Fraction(value, num_samples))


def test_many_that_add_pack_import_and_remove_at_once_leave_the_totals_right() -> None:
    fleet, now = Fleet(), timezone.now()
    shift = int(now.timestamp()) - 7_200 - START
    amounts = [fleet.amount(number, fact, "m", shift, 0) for number in range(3) for fact in range(3)]
    ids = [each.series_id for each in amounts]
    start = amounts[0].at
    goes = set(ids[3:6])

    def add() -> None:
        for second in range(0, 900, 10):
            with transaction.atomic():
                head.add_amounts(Amount(pk, start + second, pk * second) for pk in ids if pk not in goes)

    def import_() -> None:
        for second in range(5, 900, 60):
            with transaction.atomic():
                told = [Amount(pk, start + second, 7) for pk in reversed(ids)]
                chunks.add(chunks.sums_of(told, OLDEST))

    def settle() -> None:
        for _ in range(20):
            chunks.settle(now=now)

    def remove() -> None:
        remove_sources([fleet.sources[1]], clock=timezone.now, seconds=60)

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(in_a_thread, (add, settle, import_, settle, remove)))
    assert not Source.objects.filter(name="e1").exists()
    stored = fleet.stored()
    assert stored
    for step in RESOLUTION_OF:
        end = int(now.timestamp()) // step * step + step
        period = Period(max(0, end - 400 * step), end, step)
        assert told(period) == naive(stored, period)
    check(now=now)


def test_totals_of_gauges_expire_with_the_gauges() -> None:
    fleet = Fleet()
    days = range(0, 60 * DAY, DAY)
    fleet.do("chunks", [(number, 0, "m", after, 100 + number) for number in (0, 2) for after in days])
    Retention.objects.update(ten_seconds_hours=24, minutes_days=2, hours_days=20)
    now = moment(START + 60 * DAY)
    expire(now=now)
    kept = {(row.resolution, row.start_at) for row in total_rows(metric="resident_tokens")}
    assert {start for resolution, start in kept if resolution == 60} == {
        start for resolution, start in kept if resolution == 1_800
    }
    assert len([start for resolution, start in kept if resolution == DAY]) == 60
    check(now=now)


def test_a_total_of_gauges_that_is_not_their_sum_is_found() -> None:
    fleet = Fleet()
    fleet.do("chunks", [(0, 0, "m", 0, 5)])
    TotalChunk.objects.filter(resolution=1_800).update(packed=pack(Buckets([6] * NUM_BUCKETS, [1] * NUM_BUCKETS)))
    with pytest.raises(AssertionError, match="Totals are not what engines' buckets come to"):
        check(now=moment(START))


def test_totals_are_made_anew_after_a_damaged_row_was_deleted(capsys: pytest.CaptureFixture[str]) -> None:
    fleet = Fleet()
    fleet.do(
        "chunks", [(number, fact, "m", 60 * step, 100) for number in (0, 1) for fact in (0, 1) for step in range(40)]
    )
    TotalChunk.objects.filter(resolution=1_800, series__cache_tier="gpu").delete()
    Chunk.objects.filter(resolution=60, series__source=fleet.sources[0], series__cache_tier="cpu").delete()
    torn = Chunk.objects.filter(resolution=3_600, series__source=fleet.sources[1], series__cache_tier="cpu")
    (packed,) = torn.values_list("packed", flat=True)
    torn.update(packed=b"torn")
    call_command("remaketotals")
    told_ = capsys.readouterr()
    assert told_.out == "1 of 2 totals of gauges were made anew.\n"
    assert told_.err.startswith("m resident_tokens cpu: A row of dashboard_chunk cannot be read")
    torn.update(packed=packed)
    call_command("remaketotals")
    stored = fleet.stored()
    for step in RESOLUTION_OF:
        assert told(around(step)) == naive(stored, around(step))
