"""What a period says of its tiers: sums from few buckets equal those from many; what is not told is None, never 0."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dashboard.chunks import span_seconds
from dashboard.models import Series
from dashboard.selectors.flows import Flow, flows_of
from dashboard.selectors.period import Period
from dashboard.selectors.spans import pieces, span_sums
from dashboard.selectors.tier_costs import tier_costs
from dashboard.selectors.tier_series import copied_bytes_series, failures_series, load_times_series, skipped_series
from tests.dashboard.amounts import AmountStore
from tests.stored import rows

pytestmark = pytest.mark.usefixtures("store")

DAY, START = 86_400, 1_800_000_000
PERIOD = Period(START, START + 100, 10)
STEPS = (10, 60, 300, 3_600, 21_600, DAY)


def aligned(start: int, num_steps: int, step: int) -> Period:
    start = start // step * step
    return Period(start, start + num_steps * step, step)


PERIODS = st.builds(aligned, st.integers(START, START + 3 * DAY), st.integers(1, 180), st.sampled_from(STEPS))


@given(PERIODS)
def test_the_pieces_of_a_period_follow_each_other_and_none_is_finer_than_what_is_kept_for_it(period: Period) -> None:
    found = pieces(period)
    assert [piece.start for piece in found] == [period.start, *(piece.end for piece in found[:-1])]
    assert found[-1].end == period.end
    for piece in found:
        assert piece.resolution >= period.resolution
        assert piece.start % piece.resolution == piece.end % piece.resolution == 0


def test_four_days_in_minutes_are_read_from_few_chunks() -> None:
    days = Period(START // 1_800 * 1_800 + 600, START // 1_800 * 1_800 + 600 + 4 * DAY, 600)
    found = pieces(days)
    spans = [span_seconds(piece.resolution) for piece in found]
    chunks = [-(-piece.end // span) - piece.start // span for piece, span in zip(found, spans, strict=True)]
    assert len(found) > 1
    assert sum(chunks) <= 8 < 4 * DAY // span_seconds(60)


def test_an_hour_in_ten_seconds_is_read_at_once() -> None:
    assert len(pieces(Period(START // 20 * 20, START // 20 * 20 + 3_600, 20))) == 1


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(START, START + 4 * DAY), st.integers(1, 999)), max_size=25), PERIODS)
def test_few_buckets_hold_what_many_do(told: list[tuple[int, int]], period: Period) -> None:
    store = AmountStore()
    for at, value in told:
        store.add(("loaded_bytes", "disk", ""), at, value)
    few = Counter(span_sums([series.pk for series in Series.objects.all()], period))
    many = [row.value for row in rows(resolution=period.resolution) if period.start <= row.start_at < period.end]
    assert few.total() == sum(many)


TOLD = {
    ("prompt_tokens", "", ""): 1_000,
    ("prefill_tokens", "", ""): 500,
    ("prefill_microseconds", "", ""): 1_000_000,
    ("hit_tokens", "disk", ""): 320,
    ("loaded_blocks", "disk", ""): 20,
    ("loaded_bytes", "disk", ""): 20 * 4096,
    ("load_microseconds", "disk", ""): 40_000,
    ("load_times", "disk", "0.001"): 5,
    ("load_times", "disk", "0.0025"): 15,
    ("load_times", "disk", "0.005"): 0,
    ("stored_blocks", "disk", ""): 60,
    ("stored_bytes", "disk", ""): 60 * 4096,
    ("store_microseconds", "disk", ""): 90_000,
    ("tier_errors", "disk", "load"): 1,
    ("tier_errors", "disk", "store"): 0,
    ("evicted_blocks", "disk", "capacity"): 7,
    ("missed_tokens", "disk", ""): 64,
    ("entered_tokens", "gpu", "computed"): 680,
    ("entered_tokens", "gpu", "disk"): 320,
    ("entered_tokens", "disk", "gpu"): 960,
    ("left_tokens", "gpu", "disk"): 960,
    ("left_tokens", "disk", "gpu"): 320,
    ("left_tokens", "disk", "dropped"): 112,
}


def test_a_tier_s_costs_are_those_of_the_period_and_nothing_else() -> None:
    store = AmountStore()
    store.tell(START, TOLD)
    store.tell(START - 10, TOLD)
    store.tell(START + 100, TOLD)
    costs = tier_costs(PERIOD)
    disk = costs.tiers["disk"]
    assert (costs.prompt_tokens, costs.prefill_seconds_a_token) == (1_000, 0.002)
    assert (disk.hit_tokens, disk.loaded_blocks, disk.loaded_tokens, disk.load_seconds) == (320, 20, 320, 0.04)
    assert disk.load_seconds_a_token == 0.000125
    assert disk.load_p50 == pytest.approx(0.001 + 0.0015 * 5 / 15)
    assert (disk.stored_blocks, disk.stored_bytes, disk.store_seconds) == (60, 245_760, 0.09)
    assert (disk.num_errors, disk.num_evicted) == ({"load": 1, "store": 0}, {"capacity": 7})
    assert disk.missed_tokens == 64
    assert disk.saved_seconds == pytest.approx(320 * 0.002 - 0.04)


def test_what_no_engine_tells_is_none_and_what_did_not_happen_is_0() -> None:
    store = AmountStore()
    store.tell(START, {("hit_tokens", "cpu", ""): 16, ("prompt_tokens", "", ""): 20})
    cpu = tier_costs(PERIOD).tiers["cpu"]
    assert (cpu.hit_tokens, cpu.loaded_blocks, cpu.load_p50, cpu.skipped_tokens, cpu.saved_seconds) == (16, *[None] * 4)
    assert cpu.num_errors is None
    assert flows_of(tier_costs(PERIOD)) is None
    store.tell(START, {("load_skipped_tokens", "cpu", ""): 0, ("loaded_blocks", "cpu", ""): 0})
    cpu = tier_costs(PERIOD).tiers["cpu"]
    assert (cpu.skipped_tokens, cpu.loaded_blocks, cpu.load_seconds_a_token) == (0, 0, None)


def test_hits_of_engines_that_tell_no_loads_are_counted_apart() -> None:
    store = AmountStore()
    store.tell(START, TOLD, "a")
    store.tell(START, {("hit_tokens", "disk", ""): 64}, "tells-hits-alone")
    assert tier_costs(PERIOD).tiers["disk"].elsewhere_hit_tokens == 64
    assert tier_costs(PERIOD, engine="a").tiers["disk"].elsewhere_hit_tokens == 0


def test_each_engine_s_hits_are_worth_its_own_seconds() -> None:
    store = AmountStore()
    store.tell(START, TOLD, "a")
    store.tell(START, TOLD | {("prefill_microseconds", "", ""): 5_000_000}, "b")
    store.tell(START, {("hit_tokens", "disk", ""): 64}, "tells-no-prefill")
    disk = tier_costs(PERIOD).tiers["disk"]
    assert disk.saved_seconds == pytest.approx(320 * 0.002 - 0.04 + 320 * 0.01 - 0.04)
    assert disk.is_partly_saved
    assert tier_costs(PERIOD, engine="a").tiers["disk"].saved_seconds == pytest.approx(320 * 0.002 - 0.04)
    assert tier_costs(PERIOD, engine="a", model_name="other").tiers["disk"].hit_tokens == 0


def test_what_moves_between_tiers_is_counted_once_and_ends_where_it_is_freed_or_dropped() -> None:
    store = AmountStore()
    store.tell(START, TOLD)
    assert flows_of(tier_costs(PERIOD)) == [
        Flow("gpu", "disk", 960),
        Flow("computed", "gpu", 680),
        Flow("disk", "gpu", 320),
        Flow("disk", "dropped", 112),
    ]
    assert flows_of(tier_costs(PERIOD, engine="nobody")) is None


def test_steps_without_a_look_are_none_and_steps_in_which_nothing_happened_0() -> None:
    store = AmountStore()
    store.tell(START + 20, TOLD | {("load_skipped_tokens", "disk", ""): 48})
    for at in (START + 20, START + 30):
        store.add(("scrapes", "", ""), at, 1)
    unseen: list[Any] = [None] * 6
    assert copied_bytes_series(PERIOD)["tiers"] == {
        "disk": {"loaded": [None, None, 81_920, 0, *unseen], "stored": [None, None, 245_760, 0, *unseen]}
    }
    assert failures_series(PERIOD)["tiers"]["disk"]["load"] == [None, None, 1, 0, *unseen]
    assert skipped_series(PERIOD)["tiers"] == {"disk": [None, None, 48, 0, *unseen]}
    times = load_times_series(PERIOD)["tiers"]["disk"]
    assert times["count"] == [0, 0, 20, *[0] * 7]
    assert times["p50"] == [None, None, pytest.approx(0.0015), *[None] * 7]


def test_a_tier_that_no_engine_tells_of_has_no_line() -> None:
    store = AmountStore()
    store.add(("scrapes", "", ""), START, 1)
    for select in (copied_bytes_series, failures_series, skipped_series, load_times_series):
        assert select(PERIOD)["tiers"] == {}


def test_load_times_of_a_month_come_in_whole_days() -> None:
    store = AmountStore()
    month = Period(START // 21_600 * 21_600, START // 21_600 * 21_600 + 30 * DAY, 21_600)
    store.tell(month.start + 40_000, {("load_times", "disk", "0.5"): 3, ("load_times", "disk", "0.1"): 0})
    found = load_times_series(month)
    assert found["step_seconds"] == DAY
    assert sum(found["tiers"]["disk"]["count"]) == 3
    assert found["starts"][0] <= month.start < found["starts"][0] + DAY
