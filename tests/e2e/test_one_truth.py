"""One workload, one truth: the API, the request log, the stored series, the chart, the tiles, /metrics and Prometheus
all say exactly what an independent oracle computed. Real model, real processes, real Prometheus.
"""

import csv
import shutil
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from dashboard.charts.palette import LOOKS
from tests.e2e.looks import buckets, logged_in, rows
from tests.e2e.prometheus import Prometheus
from tests.e2e.stack import Stack
from tests.e2e.workload import FILE_BYTES, StackOracle, conversations, sizes_in_env

# Beside other work on two cores the requests take minutes; alone they take ten seconds.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

TIERS = ("gpu", "cpu", "disk", "remote")
# What each adds: the server keeps what is in the others, too (write_through), so it has as many blocks as all together.
SIZES = {"gpu": 20, "cpu": 14, "disk": 14, "remote": 28}
SEED, NUM_REQUESTS = 9, 36


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    sizes = sizes_in_env(SIZES) | {"TIERSCOPE_REMOTE_BYTES": str(sum(SIZES.values()) * FILE_BYTES)}
    stack = Stack(tmp_path_factory.mktemp("truth"), names=("valkey", "web", "engine", "worker"), env=sizes)
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()


@pytest.fixture(scope="module")
def truth() -> list[Counter[str]]:
    """What the oracle says of each request."""
    oracle = StackOracle(SIZES)
    return [oracle.request(prompt) for prompt in conversations(SEED, NUM_REQUESTS)]


@pytest.fixture(scope="module")
def total(truth: list[Counter[str]]) -> Counter[str]:
    return sum(truth, Counter())


@pytest.fixture(scope="module")
def told(stack: Stack) -> list[dict[str, Any]]:
    """The usage of each answer, as the client saw it."""
    client = stack.openai()
    model = client.models.list().data[0].id
    usages = []
    for prompt in conversations(SEED, NUM_REQUESTS):
        answer = client.completions.create(model=model, prompt=prompt, max_tokens=1, temperature=0)
        usages.append(answer.usage.model_dump())
        time.sleep(0.1)  # the copies that it started have ended: requests are sequential for the tiers, too
    return usages


def test_the_workload_reads_from_every_tier(total: Counter[str]) -> None:
    assert all(total[origin] > 200 for origin in (*TIERS, "computed")), total


def test_each_answer_s_usage_is_the_truth(told: list[dict[str, Any]], truth: list[Counter[str]]) -> None:
    for number, (usage, split) in enumerate(zip(told, truth, strict=True)):
        assert _split(usage["tierscope"]) == _nonzero(split), f"request {number}"
        assert usage["prompt_tokens_details"]["cached_tokens"] == split.total() - split["computed"]
        assert usage["prompt_tokens"] == split.total()


def test_the_request_log_is_the_truth(stack: Stack, told: list[Any], truth: list[Counter[str]]) -> None:
    columns = "hit_gpu_tokens, hit_cpu_tokens, hit_disk_tokens, hit_remote_tokens, computed_tokens"
    stack.wait_until(lambda: rows(stack, "SELECT count(*) FROM dashboard_requestlog")[0][0] == NUM_REQUESTS, "logged")
    logged = rows(stack, f"SELECT {columns} FROM dashboard_requestlog ORDER BY received_at")

    assert [dict(zip((*TIERS, "computed"), row, strict=True)) for row in logged] == [
        {origin: split[origin] for origin in (*TIERS, "computed")} for split in truth
    ]


def test_the_stored_series_are_the_truth_at_every_resolution(
    stack: Stack, told: list[Any], total: Counter[str]
) -> None:
    def stored() -> dict[int, dict[tuple[str, str], int]]:
        sums: dict[int, Counter[tuple[str, str]]] = defaultdict(Counter)
        for row in buckets(stack):
            if row.metric in ("prompt_tokens", "computed_tokens", "hit_tokens"):
                sums[row.resolution][row.metric, row.cache_tier] += row.value
        return {resolution: dict(of) for resolution, of in sums.items()}

    expected = {("prompt_tokens", ""): total.total(), ("computed_tokens", ""): total["computed"]}
    expected |= {("hit_tokens", tier): total[tier] for tier in TIERS if total[tier]}  # what never grew has no bucket
    stack.wait_until(
        lambda: stored().get(10, {}).get(("prompt_tokens", "")) == total.total(), f"recorded: {expected}", 40
    )
    assert stored() == dict.fromkeys((10, 60, 3600, 86400), expected)


def test_the_stored_reuse_curve_has_every_prompt_token_and_those_that_came_again(
    stack: Stack, told: list[Any], total: Counter[str]
) -> None:
    def curve() -> Counter[tuple[int, bool]]:
        sums: Counter[tuple[int, bool]] = Counter()
        for row in buckets(stack, metric="reuse_tokens"):
            sums[row.resolution, row.detail == "+Inf"] += row.value
        return sums

    stack.wait_until(lambda: curve().total() == 4 * total.total(), "recorded by capacity", 40)
    found = curve()
    hits, never = found[10, False], found[10, True]
    assert all((found[each, False], found[each, True]) == (hits, never) for each in (10, 60, 3600, 86400))
    assert hits >= total.total() - total["computed"], "a cache without limit hits no less"


def test_the_stored_tokens_by_tenant_are_the_truth(stack: Stack, told: list[Any], total: Counter[str]) -> None:
    def stored() -> set[tuple[str, str, str, int]]:
        sums: Counter[tuple[str, str, str]] = Counter()
        for row in buckets(stack, resolution=86400):
            if row.metric.startswith("tenant_") and row.metric != "tenant_reuse_tokens":
                sums[row.metric, row.cache_tier, row.detail] += row.value
        return {(*names, value) for names, value in sums.items()}

    expected = {("tenant_prompt_tokens", "", "common", total.total())}
    expected |= {("tenant_computed_tokens", "", "common", total["computed"])}
    expected |= {("tenant_hit_tokens", tier, "common", total[tier]) for tier in TIERS if total[tier]}
    stack.wait_until(lambda: stored() == expected, f"recorded by tenant: {expected}", 40)


def test_the_chart_and_the_tiles_are_the_truth(stack: Stack, told: list[Any], total: Counter[str]) -> None:
    with closing(logged_in(stack)) as browser:
        # A chart divides by the seconds that a step has lasted so far: exact again once the last step has ended.
        stack.wait_until(lambda: _drawn(browser) == +total, f"the chart adds up to {total}", 90)
        tiles = browser.get("/api/tiles.json?range=1h").raise_for_status().json()

    assert tiles["prompt_tokens"] == total.total()
    assert +Counter({row["origin"]: row["tokens"] for row in tiles["origins"]}) == +total


def test_the_read_api_and_the_files_are_the_truth(stack: Stack, told: list[Any], total: Counter[str]) -> None:
    with closing(logged_in(stack)) as browser:

        def asked(path: str) -> httpx.Response:
            return browser.get(f"/api/v1/{path}").raise_for_status()

        hits = "series?metric=hit_tokens&range=1h&step=10"
        stack.wait_until(lambda: asked("totals?range=1h").json()["prompt_tokens"] == total.total(), "recorded", 40)
        totals, series = asked("totals?range=1h").json(), asked(hits).json()["series"]
        lines = list(csv.DictReader(asked("charts/tokens.csv?range=1h").text.splitlines()))
        pages = [
            browser.get(f"/api/{name}.json?range=1h").raise_for_status().json()["rows"] for name in ("fleet", "models")
        ]

    expected = +Counter({tier: total[tier] for tier in TIERS})
    assert +Counter(totals["hit_tokens"]) == expected
    for (row,) in pages:
        assert +Counter({part["origin"]: part["tokens"] for part in row["origins"]}) == +total
    assert +Counter({each["tier"]: sum(value or 0 for value in each["values"]) for each in series}) == expected
    filed = Counter({tier: sum(int(line.get(f"{tier}_hit_tokens") or 0) for line in lines) for tier in TIERS})
    assert +filed == expected
    assert sum(int(line["computed_tokens"] or 0) for line in lines) == totals["computed_tokens"] == total["computed"]


def test_the_metrics_are_the_truth_under_both_names(stack: Stack, told: list[Any], total: Counter[str]) -> None:
    expected = {("tierscope_cached_prompt_tokens_total", tier): total[tier] for tier in TIERS}
    sources = {"device": "gpu", "host": "cpu", "disk": "disk", "external_unspecified": "remote"}
    expected |= {("vllm:prompt_tokens_cached_by_source_total", source): total[t] for source, t in sources.items()}
    expected |= {
        ("vllm:prompt_tokens_cached_by_source_total", "p2p"): 0,
        ("tierscope_prompt_tokens_total", ""): total.total(),
        ("tierscope_computed_prompt_tokens_total", ""): total["computed"],
        ("vllm:prompt_tokens_total", ""): total.total(),
        ("vllm:prompt_tokens_by_source_total", "local_compute"): total["computed"],
        ("vllm:prompt_tokens_by_source_total", "local_cache_hit"): total["gpu"],
        ("vllm:prompt_tokens_by_source_total", "external_kv_transfer"): sum(total[tier] for tier in TIERS[1:]),
        ("vllm:prefix_cache_queries_total", ""): total.total(),
        ("vllm:prefix_cache_hits_total", ""): total["gpu"],
        ("vllm:external_prefix_cache_queries_total", ""): total.total() - total["gpu"],
        ("vllm:external_prefix_cache_hits_total", ""): sum(total[tier] for tier in TIERS[1:]),
    }
    found = _samples(stack.metrics())

    assert {name: found[name] for name in expected} == expected


@pytest.mark.skipif(shutil.which("prometheus") is None, reason="Prometheus is missing: apt-get install prometheus")
def test_prometheus_and_promql_say_the_truth(
    stack: Stack, told: list[Any], total: Counter[str], tmp_path: Path
) -> None:
    with Prometheus(f"127.0.0.1:{stack.port}", tmp_path) as prometheus:
        by_tier = "sum by (cache_tier) (tierscope_cached_prompt_tokens_total)"
        found = stack.wait_until(lambda: prometheus.query(by_tier), "Prometheus has scraped", 30)
        rate = prometheus.query("sum(tierscope_cached_prompt_tokens_total) / sum(tierscope_prompt_tokens_total)")

    assert {row["metric"]["cache_tier"]: int(row["value"][1]) for row in found} == {tier: total[tier] for tier in TIERS}
    hits = total.total() - total["computed"]
    assert float(rate[0]["value"][1]) == pytest.approx(hits / total.total(), abs=1e-12)


def _drawn(browser: httpx.Client) -> Counter[str]:
    """Tokens by origin, from the heights and widths of the chart's bars."""
    figure = browser.get("/api/charts/tokens.json?range=1h").raise_for_status().json()["figure"]
    origins = {LOOKS[origin].label: origin for origin in (*TIERS, "computed")}
    return +Counter(
        {
            origins[trace["name"]]: sum(round((y or 0) * trace["width"] / 1000) for y in trace["y"])
            for trace in figure["data"]
        }
    )


def _split(told: dict[str, Any]) -> Counter[str]:
    return _nonzero(Counter(told["hit_tokens"]) + Counter(computed=told["computed_tokens"]))


def _nonzero(split: Counter[str]) -> Counter[str]:
    return +split


def _samples(text: str) -> dict[tuple[str, str], float]:
    return {
        (sample.name, sample.labels.get("cache_tier", sample.labels.get("source", ""))): sample.value
        for family in text_string_to_metric_families(text)
        if family.type == "counter"
        for sample in family.samples
    }
