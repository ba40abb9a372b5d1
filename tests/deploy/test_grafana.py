"""The provisioned Grafana dashboard asks only for names that Tierscope exports."""

import json
import re
from pathlib import Path
from typing import Any

DASHBOARD: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "deploy/grafana/dashboards/tierscope.json").read_text()
)
EXPRESSIONS = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
# The names of the design's section 4, as they stand in an exposition.
NAMES = {
    "tierscope_prompt_tokens_total",
    "tierscope_cached_prompt_tokens_total",
    "tierscope_computed_prompt_tokens_total",
    "tierscope_generated_tokens_total",
    "tierscope_requests_total",
    "tierscope_requests_running",
    "tierscope_requests_waiting",
    "tierscope_preemptions_total",
    "tierscope_tier_capacity_bytes",
    "tierscope_tier_used_bytes",
    "tierscope_tier_resident_tokens",
    "tierscope_tier_evicted_blocks_total",
    "tierscope_tier_loaded_bytes_total",
    "tierscope_tier_stored_bytes_total",
    "tierscope_tier_errors_total",
    "tierscope_time_to_first_token_seconds_bucket",
}


def test_every_query_uses_known_names_only() -> None:
    used = {name for expression in EXPRESSIONS for name in re.findall(r"tierscope_\w+", expression)}
    assert used <= NAMES


def test_no_rate_is_divided_by_something_that_can_be_zero() -> None:
    for expression in EXPRESSIONS:
        if " / " in expression:
            assert "> 0)" in expression, expression


def test_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        box = panel["gridPos"]
        cells = {(x, y) for x in range(box["x"], box["x"] + box["w"]) for y in range(box["y"], box["y"] + box["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells
