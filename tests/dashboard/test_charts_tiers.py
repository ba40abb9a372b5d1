"""Figures of the tiers page: every number of the series is in them, nothing is drawn where there is nothing."""

from typing import Any

import pytest

from dashboard.charts import bandwidth_figure, failures_figure, flows_figure, load_times_figure, skipped_figure
from dashboard.charts.flows import flow_rows
from dashboard.selectors.flows import Flow

STARTS = [1_800_000_000, 1_800_000_010, 1_800_000_020]
LATER = STARTS[-1] + 100.0


def traces(figure: dict[str, Any]) -> dict[str, list[Any]]:
    return {trace["name"]: trace["y"] for trace in figure["data"]}


def test_bandwidth_is_bytes_a_second_and_a_step_that_still_fills_is_divided_by_what_has_passed() -> None:
    series = {"starts": STARTS, "tiers": {"disk": {"loaded": [100, None, 40], "stored": [0, None, 20]}}}
    found = traces(bandwidth_figure(series, 10, STARTS[-1] + 4.0))
    assert found == {"disk loaded": [10, None, 10], "disk stored": [0, None, 5]}


def test_a_tier_that_copied_nothing_has_no_line_and_a_stretch_without_a_look_is_shaded() -> None:
    nothing: dict[str, Any] = {"loaded": [0, None, 0], "stored": [0, None, 0]}
    figure = bandwidth_figure({"starts": STARTS, "tiers": {"cpu": nothing}}, 10, LATER)
    assert figure["data"] == []
    assert [shape["x0"] for shape in figure["layout"]["shapes"]] == [STARTS[1] * 1000]


def test_load_times_are_drawn_by_tier_and_an_interpolated_zero_fits_a_logarithm() -> None:
    tiers = {"cpu": {"p50": [0.0, None, 0.0003], "p95": [0.0001, None, 0.0005], "count": [1, 0, 9]}}
    found = traces(load_times_figure({"starts": STARTS, "step_seconds": 10, "tiers": tiers}, STARTS, 10))
    assert found == {"cpu p50": [0.00001, None, 0.0003], "cpu p95": [0.0001, None, 0.0005]}


def test_failures_and_skipped_loads_are_counted_a_step() -> None:
    failures = {"starts": STARTS, "tiers": {"disk": {"load": [1, None, 0], "store": [0, None, 0]}}}
    assert traces(failures_figure(failures, 10, LATER)) == {"disk load": [1, None, 0]}
    skipped = {"starts": STARTS, "tiers": {"cpu": [0, None, 0], "remote": [16, None, 32]}}
    assert traces(skipped_figure(skipped, 10, LATER)) == {"remote": [16, None, 32]}
    assert skipped_figure({"starts": STARTS, "tiers": {}}, 10, LATER)["data"] == []


FLOWS = [Flow("gpu", "cpu", 960), Flow("computed", "gpu", 700), Flow("cpu", "gpu", 320), Flow("cpu", "dropped", 20)]


def test_the_sankey_has_every_flow_once_from_left_to_right() -> None:
    (sankey,) = flows_figure(FLOWS)["data"]
    names = sankey["node"]["label"]
    drawn = [
        (names[source], names[target], value)
        for source, target, value in zip(*(sankey["link"][key] for key in ("source", "target", "value")), strict=True)
    ]
    assert drawn == [
        ("gpu", "cpu", 960),
        ("computed", "gpu", 700),
        ("cpu", "gpu", 320),
        ("cpu", "dropped: no tier has it", 20),
    ]
    assert set(sankey["link"]["source"]).isdisjoint(sankey["link"]["target"])
    assert len(names) == len(sankey["node"]["color"]) == 6


@pytest.mark.parametrize("flows", [FLOWS, FLOWS[::-1], [Flow("gpu", "cpu", 1), Flow("computed", "gpu", 10**12)]])
def test_the_sides_of_the_sankey_have_the_same_order_whatever_moved_most(flows: list[Flow]) -> None:
    node = flows_figure(flows)["data"][0]["node"]
    sides: dict[float, list[tuple[float, str]]] = {}
    for x, y, name in zip(node["x"], node["y"], node["label"], strict=True):
        assert 0 < y < 1
        sides.setdefault(x, []).append((y, name))
    left, right = ([name for _, name in sorted(side)] for _, side in sorted(sides.items()))
    assert left == [name for name in ("computed", "gpu", "cpu") if name in left]
    assert right == [name for name in ("gpu", "cpu", "dropped: no tier has it") if name in right]


def test_the_table_of_flows_says_the_same_with_shares() -> None:
    rows = flow_rows(FLOWS)
    assert [(row["from"], row["to"], row["tokens"]) for row in rows][:1] == [("gpu", "cpu", 960)]
    assert sum(row["share"] for row in rows) == 1
    assert flow_rows([]) == flows_figure([])["data"] == []
