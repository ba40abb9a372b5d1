"""Faults that public engines and their dashboards had in reading and counting: none of them is ours.

Each test names the report that it answers.
"""

import pytest
from django.utils import timezone

from dashboard import valkey
from dashboard.models import Source
from dashboard.selectors.period import Period
from dashboard.selectors.tokens import hit_rate_series, rates
from dashboard.services.recording import record
from dashboard.services.sources import ensure_embedded
from dashboard.sources.detection import read
from dashboard.sources.summary import summary
from tests.dashboard.told import Engine, moment, stored
from tests.stored import rows

START = 1_800_000_000
booked = pytest.mark.usefixtures("valkey", "db")


def scrape(source: Source, seconds: float, text: str = "") -> None:
    Source.objects.filter(pk=source.pk).update(due_at=moment(seconds))
    record(source.pk, now=moment(seconds), connection=valkey.client(), fetch_text=lambda url: text)


def watched(kind: str) -> Source:
    return Source.objects.create(name="prod", kind=kind, url="http://prod/metrics")


def sglang(prompt: int, **cached: int) -> str:
    lines = [f'sglang:prompt_tokens_total{{model_name="m"}} {prompt}']
    lines += [f'sglang:cached_tokens_total{{model_name="m",cache_source="{k}"}} {v}' for k, v in cached.items()]
    return "\n".join(lines) + "\n"


def hits(text: str) -> dict[str, int]:
    found: dict[str, int] = summary(read(text, "auto"))["engines"][0]["hit_tokens"]
    return found


@booked
def test_an_idle_engines_counters_do_not_climb() -> None:
    """LMCache #524: an absolute value was fed to inc()."""
    source, engine = ensure_embedded(), Engine()
    engine.serve({"gpu": 64}, computed=6)
    for second in range(0, 60, 5):
        engine.publish(START + second)
        scrape(source, START + second)
    assert stored(10) == +engine.truth


@booked
def test_rates_come_from_counters_and_not_from_a_gauge_of_the_last_batch() -> None:
    """SGLang #26608: a hit-rate gauge was overwritten by every batch, zeroed by decodes."""
    source = watched("sglang")
    gauge = 'sglang:cache_hit_rate{model_name="m"} 0.0\n'
    scrape(source, START, sglang(0) + gauge)
    scrape(source, START + 10, sglang(100, device=64) + gauge)
    found = hit_rate_series(Period(START, START + 20, 20))
    assert found["total"] == [0.64]


def test_a_rate_divides_by_all_prompt_tokens_and_not_by_the_hits() -> None:
    """LMCache #1260: the hit rate was always 1."""
    found = rates({"starts": [0], "prompt": [100], "computed": [40], "hit": {"gpu": [60]}})
    assert found["total"] == [0.6]


def test_one_series_exported_twice_is_one_series() -> None:
    """LMCache #4216: the same series twice with different values; the sum would be neither."""
    text = "lmcache:num_prompt_tokens_total 100\nlmcache:num_hit_tokens_total 40\nlmcache_num_hit_tokens_total 50\n"
    adapted = read(text, "auto")
    assert summary(adapted)["engines"][0]["hit_tokens"]["unattributed"] == 50
    assert any("told twice" in problem for problem in adapted.problems)


def test_hits_without_a_denominator_give_no_rate() -> None:
    """Dynamo #4840: matched tokens without the tokens that were asked for."""
    adapted = read("kvbm_matched_tokens 128\n", "auto")
    assert summary(adapted)["engines"][0]["prompt_tokens"] is None
    assert any("no rate can be given" in problem for problem in adapted.problems)
    assert rates({"starts": [0], "prompt": [0], "computed": [0], "hit": {"unattributed": [128]}})["total"] == [None]


def test_the_denominator_is_the_same_with_and_without_offloading() -> None:
    """A denominator that changed when offloading was switched on: ours is always the prompt tokens."""
    base = 'vllm:prefix_cache_queries_total{engine="0",model_name="m"} 100\n'
    offload = base + 'vllm:external_prefix_cache_queries_total{engine="0",model_name="m"} 40\n'
    assert summary(read(base, "auto"))["engines"][0]["prompt_tokens"] == 100
    assert summary(read(offload, "auto"))["engines"][0]["prompt_tokens"] == 100


def test_a_counter_that_stays_zero_beside_one_that_moves_is_not_read_as_a_rate_of_zero_prompts() -> None:
    """production-stack #818, vllm-ascend #16639: hits 0 with no prompt tokens told is no value, not 0 %."""
    assert rates({"starts": [0], "prompt": [0], "computed": [0], "hit": {"gpu": [0]}})["tiers"]["gpu"] == [None]


@booked
def test_an_over_report_makes_no_counter_negative_and_stops_nothing() -> None:
    """vLLM #43031, LMCache #2912, vllm-omni #1468: a negative count, a −1 sentinel."""
    source = watched("vllm_old")
    for second, value in ((0, 100), (10, -7680), (20, -1), (30, 164)):
        text = f"vllm:prefix_cache_queries_total 200\nvllm:prefix_cache_hits_total {value}\n"
        scrape(source, START + second, text)
    assert stored(10)["hit_tokens", "gpu"] == 64
    assert all(row.value >= -64 for row in rows())


def test_more_hit_than_prompt_tokens_is_told_and_not_clamped() -> None:
    """SGLang #25973, #11898: 128 cached of 87 prompt tokens. InferenceX-app #741: a clamp hid it."""
    adapted = read(sglang(87, device=128), "auto")
    engine = summary(adapted)["engines"][0]
    assert (engine["prompt_tokens"], engine["hit_tokens"]["gpu"], engine["computed_tokens"]) == (87, 128, None)
    assert any("128 hit tokens of 87 prompt tokens" in problem for problem in adapted.problems)
    assert rates({"starts": [0], "prompt": [87], "computed": [0], "hit": {"gpu": [128]}})["total"] == [128 / 87]


def test_a_split_that_was_lost_stays_unattributed() -> None:
    """SGLang #26590: with more than one front-end process only `total` is told."""
    assert hits(sglang(100, total=70))["unattributed"] == 70


def test_a_remainder_is_never_booked_to_a_tier() -> None:
    """TensorRT-LLM #18519: the remainder went to `gpu`: the sum was right by construction, the answer wrong."""
    text = 'trtllm_prompt_tokens_total 100\ntrtllm_prompt_cached_tokens_total{cache_tier="secret"} 30\n'
    assert hits(text) == {"gpu": 0, "cpu": 0, "disk": 0, "remote": 0, "unattributed": 30}


def test_external_queries_are_not_the_prompt_tokens() -> None:
    """vLLM #30522: external queries included local hits; only the prompt counter is a denominator here."""
    text = (
        'vllm:prompt_tokens_total{engine="0"} 100\n'
        'vllm:prompt_tokens_cached_by_source_total{engine="0",source="device"} 60\n'
        'vllm:external_prefix_cache_queries_total{engine="0"} 100\n'
    )
    assert summary(read(text, "auto"))["engines"][0]["prompt_tokens"] == 100


def test_the_share_pinned_by_transfers_is_not_taken_for_occupancy() -> None:
    """vllm:kv_offload_cpu_cache_usage_perc near 0 was read as "the tier is empty"."""
    text = 'vllm:prefix_cache_queries_total 1\nvllm:kv_offload_cpu_cache_usage_perc{engine="0"} 0.01\n'
    assert dict(read(text, "auto").gauges) == {}


def test_a_gauge_over_the_last_thousand_requests_is_never_summed() -> None:
    """Dynamo #4333: kvbm hit rates are windows; two workers' windows do not add up."""
    adapted = read("kvbm_matched_tokens 1\nkvbm_host_cache_hit_rate 0.9\nkvbm_disk_cache_hit_rate 0.8\n", "auto")
    assert dict(adapted.gauges) == {}


def test_hits_over_current_objects_is_no_rate_here() -> None:
    """Mooncake: cumulative hits over the current object count grew above 1; ours divides two increases."""
    found = rates({"starts": [0, 10], "prompt": [100, 100], "computed": [50, 90], "hit": {"gpu": [50, 10]}})
    assert found["total"] == [0.5, 0.1]


@booked
def test_a_recorder_that_starts_late_does_not_show_the_engines_whole_past_as_one_spike() -> None:
    """The first sight of a watched engine is a baseline: yesterday's tokens are not today's."""
    source = watched("sglang")
    scrape(source, timezone.now().timestamp(), sglang(10_000_000, device=9_000_000))
    assert stored(10) == {}
