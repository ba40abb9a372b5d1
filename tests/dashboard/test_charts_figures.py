"""Figures are made from series alone: what is drawn, what is left blank, and the marks."""

import json
import math
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.charts import hit_rate_figure, residency_figure, tokens_figure, ttft_figure, with_marks

STARTS = [1000, 1010, 1020, 1030]
NOW = 1100.0


def tokens(**changes: Any) -> dict[str, Any]:
    series = {
        "starts": STARTS,
        "prompt": [100, 0, None, 50],
        "computed": [40, 0, None, 50],
        "hit": {"disk": [10, 0, None, 0], "gpu": [50, 0, None, 0]},
    }
    return series | changes


def names(figure: dict[str, Any]) -> list[str]:
    return [trace["name"] for trace in figure["data"]]


def test_tiers_are_stacked_fastest_first_with_computed_on_top() -> None:
    assert names(tokens_figure(tokens(), 10, NOW)) == ["gpu", "disk", "computed"]


def test_tokens_become_tokens_per_second() -> None:
    figure = tokens_figure(tokens(), 10, NOW)
    assert figure["data"][0]["y"] == [5.0, 0.0, None, 0.0]


def test_the_bucket_that_still_fills_is_divided_by_the_time_that_has_passed() -> None:
    figure = tokens_figure(tokens(), 10, now=1035.0)
    assert figure["data"][-1]["y"][3] == 10.0


def test_without_a_single_token_nothing_is_drawn() -> None:
    nothing = [0, 0, None, 0]
    assert tokens_figure(tokens(prompt=nothing, computed=nothing, hit={"gpu": nothing}), 10, NOW)["data"] == []


@pytest.mark.parametrize(("tokens_a_step", "tickformat"), [(5, "~r"), (9_000, "~r"), (10_000, "~s")])
def test_rates_below_one_are_no_thousandths(tokens_a_step: int, tickformat: str) -> None:
    figure = tokens_figure(tokens(computed=[tokens_a_step, 0, 0, 0]), 10, NOW)
    assert figure["layout"]["yaxis"]["tickformat"] == tickformat


def test_times_are_the_year_first_and_of_24_hours() -> None:
    xaxis = tokens_figure(tokens(), 10, NOW)["layout"]["xaxis"]
    assert xaxis["hoverformat"] == "%Y-%m-%d %H:%M:%S"
    assert not {"%I", "%p"} & set(json.dumps(xaxis).split())


def test_what_was_not_observed_is_blank_and_shaded_not_zero() -> None:
    figure = tokens_figure(tokens(), 10, NOW)
    assert all(trace["y"][2] is None for trace in figure["data"])
    assert [(shape["x0"], shape["x1"]) for shape in figure["layout"]["shapes"]] == [(1_020_000, 1_030_000)]


def test_a_bucket_that_has_just_begun_is_not_yet_called_unobserved() -> None:
    figure = tokens_figure(tokens(prompt=[1, 1, 1, None]), 10, now=1045.0)
    assert figure["layout"]["shapes"] == []


def test_a_tiers_bar_also_says_how_much_of_what_reached_it_was_a_hit() -> None:
    series = {"starts": [1000, 1010], "total": [0.6, None], "tiers": {"cpu": [0.3, None]}}
    figure = hit_rate_figure(series | {"conditional": {"cpu": [0.75, None]}}, 10)
    assert figure["data"][0]["hovertext"] == ["30.0 % (75.0 % of what reached it)", "–"]


def test_neighbouring_unobserved_buckets_are_one_shaded_stretch() -> None:
    figure = tokens_figure(tokens(prompt=[1, None, None, 1]), 10, NOW)
    assert [(shape["x0"], shape["x1"]) for shape in figure["layout"]["shapes"]] == [(1_010_000, 1_030_000)]


def test_a_hit_rate_is_blank_where_nothing_was_asked() -> None:
    series = {"starts": STARTS, "total": [0.6, None, None, 0.0], "tiers": {"gpu": [0.6, None, None, 0.0]}}
    gpu, total = hit_rate_figure(series, 10)["data"]
    assert gpu["y"] == total["y"] == [0.6, None, None, 0.0]


def test_a_value_alone_between_gaps_is_drawn_as_a_dot() -> None:
    values = [0.5, None, 0.5, 0.5]
    p50, _ = ttft_figure({"starts": STARTS, "tiers": {"gpu": {"p50": values, "p95": values}}}, 10)["data"]
    assert p50["marker"]["size"] == [7, 0, 0, 0]
    assert p50["connectgaps"] is False


def test_an_impossible_rate_above_one_is_not_hidden() -> None:
    series = {"starts": [1000], "total": [1.4], "tiers": {"gpu": [1.4]}}
    figure = hit_rate_figure(series, 10)
    assert figure["data"][0]["y"] == [1.4]
    assert figure["layout"]["yaxis"]["range"][1] >= 1.4


def test_every_tier_that_is_used_has_a_row_of_its_own() -> None:
    used = {"resident": [1, 2, None, 4], "capacity": [10, 10, None, 10]}
    unused = {"resident": [0, 0, None, 0], "capacity": [0, 0, None, 0]}
    figure = residency_figure({"starts": STARTS, "tiers": {"gpu": used, "cpu": used, "remote": unused}}, 10)
    assert names(figure) == ["gpu resident", "gpu capacity", "cpu resident", "cpu capacity"]
    top, bottom = figure["layout"]["yaxis"]["domain"], figure["layout"]["yaxis2"]["domain"]
    assert top[0] > bottom[1]


def test_what_was_not_observed_is_not_filled_as_if_it_were_between_its_neighbours() -> None:
    values = {"resident": [1, 2, None, 4], "capacity": [10, 10, None, 10]}
    resident = residency_figure({"starts": STARTS, "tiers": {"gpu": values}}, 10)["data"][0]
    assert (resident["type"], resident["y"], resident["width"]) == ("bar", [1, 2, None, 4], 10_000)
    assert resident["x"] == [start * 1000 for start in STARTS]


def test_rows_fill_the_plot_without_overlap() -> None:
    used = {"resident": [1], "capacity": [10]}
    figure = residency_figure({"starts": [1000], "tiers": dict.fromkeys(["gpu", "cpu", "disk", "remote"], used)}, 10)
    domains = [figure["layout"][f"yaxis{row}"]["domain"] for row in ("", "2", "3", "4")]
    assert domains[0][1] == 1
    assert domains[-1][0] >= 0
    assert all(upper[0] > lower[1] for upper, lower in pairwise(domains))


def test_no_residency_draws_nothing() -> None:
    assert residency_figure({"starts": STARTS, "tiers": {}}, 10)["data"] == []


def test_times_to_first_token_come_in_order_of_speed_with_the_untiered_last() -> None:
    values = {"p50": [0.1], "p95": [0.2], "count": [3]}
    figure = ttft_figure({"starts": [1000], "tiers": {"none": values, "disk": values, "gpu": values}}, 10)
    assert names(figure)[::2] == ["gpu p50", "disk p50", "no tier read p50"]


def test_a_tier_that_nobody_read_has_no_line() -> None:
    figure = ttft_figure({"starts": [1000], "tiers": {"gpu": {"p50": [None], "p95": [None]}}}, 10)
    assert figure["data"] == []


@pytest.mark.parametrize(
    ("least", "most", "edges"),
    [
        (0.375, 0.4875, [0.2, 0.5]),
        (0.5, 0.5, [0.2, 1]),
        (0.3, 0.6, [0.2, 1]),
        (200, 300, [100, 300]),
    ],
)
def test_times_between_two_marks_have_an_axis_with_both(least: float, most: float, edges: list[float]) -> None:
    figure = ttft_figure({"starts": [1000], "tiers": {"gpu": {"p50": [least], "p95": [most]}}}, 10)
    assert [10**edge for edge in figure["layout"]["yaxis"]["range"]] == pytest.approx(edges)


def test_times_over_several_marks_leave_the_axis_to_the_chart() -> None:
    figure = ttft_figure({"starts": [1000], "tiers": {"gpu": {"p50": [0.1], "p95": [0.9]}}}, 10)
    assert "range" not in figure["layout"]["yaxis"]


def test_a_zero_has_a_place_on_the_logarithmic_axis() -> None:
    figure = ttft_figure({"starts": [1000], "tiers": {"gpu": {"p50": [0.0], "p95": [0.3]}}}, 10)
    assert figure["data"][0]["y"] == [0.0001]


def test_a_change_of_a_tier_is_a_line_and_a_text_to_hover() -> None:
    figure = with_marks(tokens_figure(tokens(), 10, NOW), [{"at": 1015.5, "text": "gpu resized"}])
    line = figure["layout"]["shapes"][-1]
    assert (line["x0"], line["x1"], line["name"]) == (1_015_500, 1_015_500, "mark")
    assert figure["data"][-1]["text"] == ["gpu resized"]


def test_marks_are_not_drawn_on_an_empty_chart() -> None:
    empty = residency_figure({"starts": STARTS, "tiers": {}}, 10)
    assert with_marks(empty, [{"at": 1015.5, "text": "gpu resized"}]) == empty


def test_with_marks_leaves_the_figure_it_was_given_alone() -> None:
    figure = tokens_figure(tokens(), 10, NOW)
    before = json.dumps(figure)
    with_marks(figure, [{"at": 1015.5, "text": "gpu resized"}])
    assert json.dumps(figure) == before


amounts = st.one_of(st.none(), st.integers(0, 10**12))


@given(st.lists(st.tuples(amounts, amounts, amounts), max_size=40), st.sampled_from([10, 60, 3600]))
def test_any_series_becomes_a_figure_whose_json_is_valid(rows: list[tuple[int | None, ...]], step: int) -> None:
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], []]
    series = {
        "starts": [step * i for i in range(len(rows))],
        "prompt": columns[0],
        "computed": columns[1],
        "hit": {"cpu": columns[2]},
    }
    figure = tokens_figure(series, step, now=float(step * len(rows) + 15))
    json.dumps(figure, allow_nan=False)
    blanks = sum((shape["x1"] - shape["x0"]) // (step * 1000) for shape in figure["layout"]["shapes"])
    assert blanks == columns[0].count(None)


@given(st.lists(st.one_of(st.none(), st.floats(0, 500, allow_nan=False)), min_size=1, max_size=40))
def test_any_latencies_become_positive_numbers_or_blanks(values: list[float | None]) -> None:
    starts = [10 * index for index in range(len(values))]
    figure = ttft_figure({"starts": starts, "tiers": {"cpu": {"p50": values, "p95": values}}}, 10)
    for trace in figure["data"]:
        assert all(y is None or (y > 0 and math.isfinite(y)) for y in trace["y"])
        assert [y is None for y in trace["y"]] == [value is None for value in values]
