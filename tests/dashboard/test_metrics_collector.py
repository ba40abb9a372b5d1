"""The engine's own /metrics text: all names, zeros from the start, identities at every scrape, nothing for promtool."""

import random
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from dashboard.engine_metrics import EngineCollector, Exposition
from engine.engine import Engine
from engine.trace_folder import TraceFolder
from engine.trace_writer import TraceWriter
from tests.engine.harness import BLOCK_BYTES, BLOCK_SIZE, Rig, make_rig
from tiers import Tier

TIERS = {"gpu", "cpu", "disk", "remote"}
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    rig = make_rig(gpu=16, cpu=16, disk=32, path=tmp_path, tenants=("a",), max_tenants=3)
    yield rig
    rig.close()


def exposition(rig: Rig) -> Exposition:
    collector = EngineCollector(rig.engine.snapshot, engine="e1", model_name="m", block_size=BLOCK_SIZE)
    return Exposition(collector)


def read(text: str) -> Samples:
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = {name: value for name, value in sample.labels.items() if name not in ("engine", "model_name")}
            key = (sample.name, tuple(sorted(labels.items())))
            assert key not in found, f"{key} is there twice"
            found[key] = sample.value
    return found


def total(samples: Samples, name: str) -> float:
    return sum(value for (found, _), value in samples.items() if found == name)


def test_every_series_is_there_from_the_start_with_zero(rig: Rig) -> None:
    samples = read(exposition(rig).text())
    counters = {key: value for key, value in samples.items() if key[0].endswith(("_total", "_count", "_bucket"))}

    assert set(counters.values()) == {0.0}
    for name in (
        "tierscope_cached_prompt_tokens_total",
        "tierscope_tier_load_skipped_tokens_total",
        "tierscope_tier_capacity_bytes",
        "tierscope_tier_used_bytes",
        "tierscope_tier_resident_tokens",
        "tierscope_tier_capacity_tokens",
        "tierscope_tier_loaded_bytes_total",
        "tierscope_tier_stored_bytes_total",
    ):
        assert {dict(labels)["cache_tier"] for found, labels in samples if found == name} == TIERS, name
    ttft = {dict(labels)["cache_tier"] for n, labels in samples if n == "tierscope_time_to_first_token_seconds_count"}
    assert ttft == TIERS | {"none"}
    sources = {dict(labels)["source"] for n, labels in samples if n == "vllm:prompt_tokens_cached_by_source_total"}
    assert sources == {"device", "host", "p2p", "disk", "external_unspecified"}


def test_a_gpu_tier_that_shrinks_under_a_running_request_is_full_and_says_what_it_really_holds(rig: Rig) -> None:
    answer = rig.submit("long", range(40), 20)
    rig.step()
    rig.engine.resize(Tier.GPU, 15 * BLOCK_BYTES)
    rig.step()
    while rig.engine.snapshot().cache[Tier.GPU].pinned_blocks < 13:
        rig.step()
    before = read(exposition(rig).text())
    assert 0 < before["vllm:kv_cache_usage_perc", ()] < 1

    rig.cache.resize(Tier.GPU, 4 * BLOCK_BYTES)  # past the engine, which refuses what a running request needs
    samples = read(exposition(rig).text())
    gpu = (("cache_tier", "gpu"),)
    assert samples["vllm:kv_cache_usage_perc", ()] == 1
    assert samples["tierscope_tier_capacity_bytes", gpu] == 4 * BLOCK_BYTES
    assert samples["tierscope_tier_used_bytes", gpu] >= 13 * BLOCK_BYTES
    assert "above its capacity while it shrinks" in exposition(rig).text()
    rig.engine.abort("long")
    rig.run(answer)


def test_the_names_of_the_design_are_all_there(rig: Rig) -> None:
    names = {name for name, _ in read(exposition(rig).text())}

    own = """prompt_tokens_total cached_prompt_tokens_total computed_prompt_tokens_total generated_tokens_total
        requests_total requests_running requests_waiting preemptions_total tier_capacity_bytes tier_used_bytes
        tier_resident_tokens tier_evicted_blocks_total tier_loaded_bytes_total tier_stored_bytes_total
        tier_loaded_blocks_total tier_stored_blocks_total tier_store_seconds_total tier_entered_tokens_total
        tier_left_tokens_total tier_missed_after_eviction_tokens_total tier_load_skipped_tokens_total
        prefill_tokens_total prefill_seconds_total
        tenant_prompt_tokens_total tenant_cached_prompt_tokens_total tenant_computed_prompt_tokens_total
        tenant_resident_tokens tier_refused_tokens_total
        reuse_tokens_total tenant_reuse_tokens_total reuse_sample_ratio
        tier_load_seconds_bucket tier_errors_total time_to_first_token_seconds_bucket
        inter_token_latency_seconds_bucket request_seconds_bucket"""
    vllm = """prompt_tokens_cached_by_source_total prompt_tokens_by_source_total prefix_cache_queries_total
        prefix_cache_hits_total external_prefix_cache_queries_total external_prefix_cache_hits_total prompt_tokens_total
        prompt_tokens_cached_total generation_tokens_total request_success_total num_requests_running
        num_requests_waiting kv_cache_usage_perc num_preemptions_total time_to_first_token_seconds_bucket
        inter_token_latency_seconds_bucket e2e_request_latency_seconds_bucket"""
    assert {f"tierscope_{name}" for name in own.split()} | {f"vllm:{name}" for name in vllm.split()} <= names


def test_what_is_recorded_is_counted_where_it_is_recorded_at_all(rig: Rig, tmp_path: Path) -> None:
    assert ("tierscope_trace_requests_total", (("outcome", "dropped"),)) not in read(exposition(rig).text())
    writer = TraceWriter(TraceFolder(tmp_path / "traces", 1 << 20), secret=b"s", model_name="m", block_size=4)
    rig.engine = Engine(rig.engine.config, rig.runner, rig.cache, clock=rig.clock, recording=writer.recording())
    rig.ask("a", [1] * 9)
    writer.write()
    samples = read(exposition(rig).text())
    counts = [samples["tierscope_trace_requests_total", (("outcome", name),)] for name in ("recorded", "dropped")]
    assert counts == [1, 0]


def test_every_series_names_its_engine_and_model(rig: Rig) -> None:
    for family in text_string_to_metric_families(exposition(rig).text()):
        for sample in family.samples:
            assert (sample.labels["engine"], sample.labels["model_name"]) == ("e1", "m")


def test_the_identities_hold_at_every_scrape_under_load(rig: Rig) -> None:
    random_ids = random.Random(3)
    shared = [random_ids.randrange(90) for _ in range(24)]
    text = exposition(rig)
    for number in range(120):
        if number % 4 == 0:
            prompt = shared[: random_ids.randrange(4, 24)] + [random_ids.randrange(90) for _ in range(5)]
            tenant = random_ids.choice("abcd")
            rig.submit(f"r{number}", prompt, max_tokens=random_ids.randrange(1, 6), salt=tenant, tenant=tenant)
        if number % 17 == 0:
            rig.engine.abort(f"r{number - 4}")
        rig.step()
        _check_identities(read(text.text()))
    rig.run()
    _check_identities(read(text.text()))
    assert total(read(text.text()), "tierscope_cached_prompt_tokens_total") > 0


def _check_identities(samples: Samples) -> None:
    prompt = total(samples, "tierscope_prompt_tokens_total")
    hits = total(samples, "tierscope_cached_prompt_tokens_total")
    assert prompt == hits + total(samples, "tierscope_computed_prompt_tokens_total")
    local, external = (
        total(samples, "vllm:prefix_cache_hits_total"),
        total(samples, "vllm:external_prefix_cache_hits_total"),
    )
    assert total(samples, "vllm:prompt_tokens_cached_by_source_total") == local + external == hits
    assert total(samples, "vllm:prompt_tokens_by_source_total") == prompt == total(samples, "vllm:prompt_tokens_total")
    assert total(samples, "vllm:prompt_tokens_cached_total") == hits
    assert total(samples, "vllm:external_prefix_cache_queries_total") == prompt - local
    assert 0 <= total(samples, "vllm:kv_cache_usage_perc") <= 1
    assert total(samples, "tierscope_reuse_tokens_total") == prompt
    _check_tenants(samples)
    _check_flows(samples)


def _check_tenants(samples: Samples) -> None:
    """Summed over tenants they are the engine's own, tier by tier."""
    assert total(samples, "tierscope_tenant_reuse_tokens_total") == total(samples, "tierscope_prompt_tokens_total")
    for name in ("prompt", "computed_prompt"):
        assert total(samples, f"tierscope_tenant_{name}_tokens_total") == total(
            samples, f"tierscope_{name}_tokens_total"
        )
    names = set()
    by_tier: Counter[str] = Counter()
    for (name, labels), value in samples.items():
        if name == "tierscope_tenant_cached_prompt_tokens_total":
            names.add(dict(labels)["tenant"])
            by_tier[dict(labels)["cache_tier"]] += int(value)
    assert {"a", "other"} <= names
    assert len(names) <= 4
    for tier in TIERS:
        assert by_tier[tier] == samples["tierscope_cached_prompt_tokens_total", (("cache_tier", tier),)]
        resident = sum(
            value
            for (name, labels), value in samples.items()
            if name == "tierscope_tenant_resident_tokens" and ("cache_tier", tier) in labels
        )
        assert resident == samples["tierscope_tier_resident_tokens", (("cache_tier", tier),)]


def _check_flows(samples: Samples) -> None:
    def of(tier: str, name: str) -> float:
        return sum(value for (n, labels), value in samples.items() if n == name and ("cache_tier", tier) in labels)

    for tier in TIERS:
        there = of(tier, "tierscope_tier_entered_tokens_total") - of(tier, "tierscope_tier_left_tokens_total")
        assert there == of(tier, "tierscope_tier_resident_tokens"), tier


def test_histograms_are_cumulative_and_agree_with_their_counts(rig: Rig) -> None:
    rig.ask("a", list(range(12)), max_tokens=4)
    samples = read(exposition(rig).text())

    bounds = [
        (float(dict(labels)["le"]), v) for (n, labels), v in samples.items() if n == "tierscope_request_seconds_bucket"
    ]
    values = [value for _, value in sorted(bounds)]
    assert values == sorted(values)
    assert values[-1] == samples["tierscope_request_seconds_count", ()] == 1
    assert total(samples, "tierscope_time_to_first_token_seconds_count") == 1
    assert samples["vllm:time_to_first_token_seconds_count", ()] == 1
    assert samples["tierscope_inter_token_latency_seconds_count", ()] == 3


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is missing: apt-get install prometheus")
def test_promtool_has_nothing_to_say_but_vllm_s_colons(rig: Rig) -> None:
    rig.ask("a", list(range(12)))
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=exposition(rig).text(), capture_output=True, text=True, timeout=30
    )

    said = (checked.stdout + checked.stderr).splitlines()
    assert [line for line in said if not (line.startswith("vllm:") and line.endswith("should not contain ':'"))] == []
