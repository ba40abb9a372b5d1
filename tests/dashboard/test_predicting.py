"""What a prediction is made of, number by number: hits, times, dollars; and the words, where something is not known."""

from dataclasses import replace
from typing import Any

import pytest

from dashboard.advising import front_of
from dashboard.charts.advice import advice_rows
from dashboard.charts.what_if import curve_figure, frontier_figure, split_figure
from dashboard.charts.what_if_words import EXACT_BLOCKS, exact_tokens, how_sampled, margins, next_gib, notes
from dashboard.predicting import GIB, Predictor
from dashboard.selectors.prices import PriceList
from dashboard.selectors.reuse import ReuseCurve
from dashboard.selectors.tier_costs import Costs, TierCost
from dashboard.selectors.tier_sizes import TierSize
from dashboard.selectors.what_if import Measured

# A token is a MiB, a GiB 1,024 tokens. Of 1,000 tokens 400 hit in gpu and 200 in cpu; 300 would from 8,192 on.
CURVE = ReuseCurve((512, 1_024, 4_096, 8_192), (0, 400, 200, 300), 100, 1_000, 1.0)
TIERS = (TierSize("gpu", GIB, 2**20), TierSize("cpu", 3 * GIB, 2**20), TierSize("disk", 0, 2**20))


def costs(**changes: Any) -> Costs:
    tiers = {tier: TierCost(tier) for tier in ("gpu", "cpu", "disk", "remote")}
    tiers["gpu"] = TierCost("gpu", hit_tokens=400)
    tiers["cpu"] = TierCost("cpu", hit_tokens=200, loaded_tokens=200, load_seconds=0.02)
    told: dict[str, Any] = {"prompt_tokens": 1_000, "prefill_tokens": 400, "prefill_seconds": 0.4, "tiers": tiers}
    return Costs(**(told | changes))


TTFT = {"": {0.5: 0, 1.0: 4}, "gpu": {0.5: 4, 1.0: 0}, "cpu": {0.5: 2, 1.0: 0}}


def predictor(prices: PriceList | None = None, **changes: Any) -> Predictor:
    told: dict[str, Any] = {"curve": CURVE, "costs": costs(), "computed_tokens": 400, "ttft": TTFT}
    told |= {"mean_ttft_seconds": 0.3, "observed_seconds": 100.0}
    return Predictor(Measured(**(told | changes)), TIERS, prices or PriceList())


def test_today_s_sizes_give_today_s_split_and_mean() -> None:
    made = predictor()
    outcome = made.predict(made.today)
    assert outcome.hit == {"gpu": 0.4, "cpu": 0.2, "disk": 0.0}
    assert outcome.hit == made.as_measured.hit
    assert outcome.ttft_seconds == pytest.approx(0.3)
    assert outcome.ttft_p95_seconds == pytest.approx(made.as_measured.ttft_p95_seconds)


def test_a_change_costs_what_prefill_and_loads_of_the_mean_prompt_take() -> None:
    made = predictor()
    outcome = made.predict({**made.today, "cpu": 0})
    # 200 more tokens of ten prompts are computed at 1 ms and not loaded at 0.1 ms.
    assert outcome.ttft_seconds == pytest.approx(0.3 + (200 * 0.001 - 200 * 0.0001) / 10)


def test_a_tier_from_which_no_load_was_measured_promises_nothing() -> None:
    made = predictor()
    outcome = made.predict({**made.today, "disk": 4 * GIB})
    assert outcome.hit["disk"] == pytest.approx(0.3)
    assert outcome.ttft_seconds == pytest.approx(0.3)
    with_disk = replace(made, tiers=(*TIERS[:2], replace(TIERS[2], num_bytes=4 * GIB)))
    assert any("No load from disk was measured" in note["text"] for note in notes(with_disk, with_disk.today))


@pytest.mark.parametrize("changes", [{"mean_ttft_seconds": None}, {"costs": costs(prefill_seconds=None)}, {"ttft": {}}])
def test_without_what_it_is_made_of_there_is_no_mean(changes: dict[str, Any]) -> None:
    made = predictor(**changes)
    assert made.predict(made.today).ttft_seconds is None
    assert notes(made, made.today)


def test_the_p95_stays_while_enough_requests_read_nothing() -> None:
    made = predictor()
    today = made.predict(made.today).ttft_p95_seconds
    assert today is not None
    fewer = made.predict({**made.today, "gpu": 9 * GIB}).ttft_p95_seconds
    assert fewer is not None
    assert 0.5 < fewer < today  # 10 of 100 prompts' tokens are computed still


def test_a_tier_that_nobody_read_from_borrows_the_times_of_the_next_slower_one() -> None:
    made = predictor(ttft={"": {0.5: 0, 1.0: 4}, "cpu": {0.5: 2, 1.0: 0}})
    all_gpu = made.p95_ttft({"gpu": 1.0, "cpu": 0.0, "disk": 0.0})
    assert all_gpu is not None
    assert all_gpu <= 0.5
    all_disk = made.p95_ttft({"gpu": 0.0, "cpu": 0.0, "disk": 1.0})
    assert all_disk is not None
    assert all_disk > 0.5


def test_a_bill_has_what_is_priced_only() -> None:
    made = predictor(PriceList({"cpu": 2.0}, gpu_hour=3.0))
    outcome = made.predict({**made.today, "cpu": 4 * GIB})
    # 10 tokens a second of which 0.325 are computed at 1 ms: 0.325 % of a GPU.
    assert outcome.dollars == {"cpu": 8.0, "prefill": pytest.approx(0.00325 * 730 * 3)}
    assert predictor().predict(made.today).bill is None


def test_a_million_prompt_tokens_cost_their_share_of_the_month_and_what_was_hit_was_saved() -> None:
    made = predictor(PriceList({"cpu": 2.0}))
    outcome = made.predict({**made.today, "cpu": 4 * GIB})
    # 10 tokens a second are 26.28 million a month; 1,000 tokens in the period, 1 ms each, 67.5 % hit.
    assert outcome.million_dollars == pytest.approx(8.0 / 26.28)
    assert outcome.saved_seconds == pytest.approx(0.675)
    assert predictor().predict(made.today).million_dollars is None


def test_the_next_gib_says_what_it_brings() -> None:
    made = predictor(PriceList({"gpu": 5.0, "cpu": 2.0, "disk": 0.5}))
    today = made.predict(made.today)
    sentences = {tier.tier: next_gib(tier, made, made.today, today) for tier in TIERS}
    assert sentences["gpu"] == (
        "The next GiB of gpu would serve 7.5 % more of the prompt tokens, mean time to first token −7.41 ms, "
        "+$5.00 a month."
    )
    full = {"gpu": 16 * GIB, "cpu": 0, "disk": 0}
    assert "would bring nothing" in next_gib(TIERS[1], made, full, made.predict(full))
    small = {"gpu": 0, "cpu": 16 * GIB, "disk": 0}
    assert "from here instead of from another tier" in next_gib(TIERS[0], made, small, made.predict(small))


def test_a_tier_that_holds_only_copies_is_said_to_serve_nothing() -> None:
    made = predictor()
    copies = replace(TIERS[1], num_bytes=GIB // 2, modes={"write_mode": "write_through"})
    made = replace(made, tiers=(TIERS[0], copies, TIERS[2]))
    assert made.hit(made.today)["cpu"] == 0
    assert any("cpu gets copies and is no larger" in note["text"] for note in notes(made, made.today))
    assert not any("gets copies" in note["text"] for note in notes(predictor(), predictor().today))


def test_how_far_sampling_leaves_it_open_is_said_for_what_lies_below_the_newest_blocks() -> None:
    points = [(512, 0.0), (exact_tokens(CURVE), 0.5), (2 * exact_tokens(CURVE), 0.75), (4 * exact_tokens(CURVE), 1.0)]
    assert how_sampled(CURVE, points) == "Every block was looked at: nothing is sampled."
    assert margins(CURVE, points) == []
    sampled = replace(CURVE, total_tokens=1_024_000, sample_rate=0.1)
    # Half of a million tokens lies below, of which a tenth of 1,000 blocks of 512 tokens is looked at.
    open_by = 1.96 * 0.5 * 0.05
    found = margins(sampled, points)
    assert [high - low for low, high in found] == pytest.approx([0.0, 0.0, 2 * open_by, 0.0])
    assert "Up to 33.6 M tokens every block was looked at. Of those that lie deeper 10 %" in how_sampled(
        sampled, points
    )
    assert "± 4.9 points" in how_sampled(sampled, points)
    assert "does not tell" in how_sampled(replace(CURVE, sample_rate=None), points)


def test_what_is_counted_exactly_is_what_the_engine_keeps_whole() -> None:
    from tiers.whatif.shards import MAX_BLOCKS

    assert EXACT_BLOCKS == MAX_BLOCKS // 2


# -- advice -----------------------------------------------------------------------------------------------------------

PRICES = PriceList({"gpu": 50.0, "cpu": 2.0})


def test_only_tiers_with_a_price_are_moved_and_the_frontier_goes_up_in_price_and_down_in_time() -> None:
    front = front_of(predictor(PRICES), "mean")
    assert {choice.sizes[2] for choice in front.choices} == {0}
    costs_, seconds = zip(*((choice.cost, choice.seconds) for choice in front.choices), strict=True)
    assert list(costs_) == sorted(costs_)
    assert list(seconds) == sorted(seconds, reverse=True)
    assert front.choices[-1].seconds == pytest.approx(min(choice.seconds for choice in front.choices))


@pytest.mark.parametrize("kind", ["mean", "p95"])
def test_every_advice_keeps_its_limit_and_has_a_reason(kind: str) -> None:
    front = front_of(predictor(PRICES), kind)
    rows = {row["name"]: row for row in advice_rows(front, budget=60.0, seconds=0.29)}
    names = ["Today", "Knee", "At most $60.00", f"{front.time_name} at most 290 ms", "Cheapest", "Fastest"]
    assert [name for name in names if name in rows or name == "Knee"] == names
    for row in rows.values():
        assert row["sentence"].endswith((".", "limit."))
        assert set(row["sizes"]) in ({"gpu", "cpu", "disk"}, set())


def test_a_limit_that_nothing_keeps_is_said() -> None:
    rows = advice_rows(front_of(predictor(PRICES), "mean"), budget=0.0, seconds=None)
    assert ("At most $0.00", "None of the sizes that were tried keeps this limit.") in {
        (row["name"], row["sentence"]) for row in rows
    }


# -- figures ----------------------------------------------------------------------------------------------------------


def test_the_curve_marks_where_tiers_reach_and_where_they_would() -> None:
    points = [(512, 0.0), (1_024, 0.4)]
    figure = curve_figure(points, 2**20, {"gpu": 512}, {"gpu": 1_024}, [(0.0, 0.1), (0.3, 0.5)])
    assert [trace["name"] for trace in figure["data"]] == ["sampling", "sampling", "hit rate"]
    assert [(shape["name"], shape["x0"]) for shape in figure["layout"]["shapes"]] == [
        ("gpu today", 512),
        ("gpu chosen", 1_024),
    ]
    assert figure["layout"]["xaxis"]["ticktext"][0] == "512<br>512 MiB"


def test_the_curve_is_shown_as_far_as_tiers_reach_and_anything_hits() -> None:
    points = [(16, 0.0), (1_024, 0.4), (4_096, 0.5), (2**28, 0.5)]
    figure = curve_figure(points, 2**20, {"gpu": 512}, {"gpu": 512})
    assert figure["data"][-1]["x"] == [16, 1_024, 4_096, 2**28]
    low, high = (10**edge for edge in figure["layout"]["xaxis"]["range"])
    assert low < 16
    assert 4 * 4_096 < high < 2**16


def test_the_split_s_bars_add_up_to_all_prompt_tokens() -> None:
    figure = split_figure({"measured": {"gpu": 0.4, "cpu": 0.1}, "predicted": {"gpu": 0.5, "disk": 0.2}})
    assert [trace["name"] for trace in figure["data"]] == ["gpu", "cpu", "disk", "computed"]
    for bar in (0, 1):
        assert sum(trace["x"][bar] for trace in figure["data"]) == pytest.approx(1.0)


def test_the_frontier_names_its_points() -> None:
    figure = frontier_figure([(1.0, 0.3, "a"), (2.0, 0.2, "b")], {"today": (1.5, 0.4)})
    assert [trace["name"] for trace in figure["data"]] == ["frontier", "today"]
