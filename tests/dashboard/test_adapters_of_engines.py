"""One text of every engine that is known, recorded or built, and what its table makes of it, to the token."""

from pathlib import Path

import pytest

from dashboard.models import Source
from dashboard.sources.adapter import Adapted
from dashboard.sources.detection import read
from dashboard.sources.rules import Metric
from dashboard.sources.summary import summary
from dashboard.sources.tables import ADAPTERS

EXPOSITIONS = Path(__file__).parent / "expositions"
UNKNOWN = None

# file → kind, and by engine and model: prompt, computed, hits by tier (those that are not 0)
ENGINES = {
    "vllm-0.32.0-multitier-edited.txt": (
        "vllm",
        {("0", "smollm2"): (9930, 458, {"gpu": 7040, "cpu": 1792, "disk": 512, "remote": 128})},
    ),
    "vllm-0.29-built.txt": (
        "vllm_old",
        {("0", "qwen3-8b"): (1_024_000, 448_000, {"gpu": 512_000, "unattributed": 64_000})},
    ),
    "vllm-ray-built.txt": (
        "vllm",
        {
            ("a1b2", "qwen3-8b"): (1000, 300, {"gpu": 600, "cpu": 100}),
            ("c3d4", "qwen3-8b"): (400, 192, {"gpu": 160, "cpu": 40, "unattributed": 8}),
        },
    ),
    "sglang-0.5.23-hicache-built.txt": (
        "sglang",
        {("", "llama-3.1-8b"): (10_000, 4000, {"gpu": 4000, "cpu": 1500, "disk": 500})},
    ),
    "lmcache-0.5.6-mp-built.txt": (
        "lmcache_mp",
        {("", "qwen3-14b"): (64_000, UNKNOWN, {"cpu": 28_160, "unattributed": 5120})},
    ),
    "lmcache-0.5.6-built.txt": (
        "lmcache",
        {("", "qwen3-14b"): (64_000, 17_920, {"gpu": 30_720, "unattributed": 15_360})},
    ),
    "kvbm-built.txt": ("kvbm", {("", ""): (UNKNOWN, UNKNOWN, {"unattributed": 128_000})}),
    "trtllm-built.txt": ("trtllm", {("", "nemotron-nano"): (90_000, 54_000, {"unattributed": 36_000})}),
    "llamacpp-built.txt": ("llamacpp", {("", ""): (UNKNOWN, 5200, {})}),
}


def told(name: str) -> Adapted:
    return read((EXPOSITIONS / name).read_text(), "auto")


@pytest.mark.parametrize("name", ENGINES)
def test_an_engines_text_is_detected_and_comes_out_to_the_token(name: str) -> None:
    kind, expected = ENGINES[name]
    found = summary(told(name))
    assert found["kind"] == kind
    assert {
        (each["engine"], each["model_name"]): (
            each["prompt_tokens"],
            each["computed_tokens"],
            {tier: tokens for tier, tokens in each["hit_tokens"].items() if tokens},
        )
        for each in found["engines"]
    } == expected


def test_every_kind_has_a_text_or_is_our_own() -> None:
    assert {kind for kind, _ in ENGINES.values()} == ADAPTERS.keys() - {"tierscope"}


def test_every_kind_can_be_chosen() -> None:
    assert ADAPTERS.keys() <= set(Source.Kind.values)


@pytest.mark.parametrize("name", [name for name in ENGINES if name != "kvbm-built.txt"])
def test_a_text_that_is_well_formed_has_no_problems(name: str) -> None:
    assert told(name).problems == ()


def test_hits_without_a_denominator_say_why_there_is_no_rate() -> None:
    (problem,) = told("kvbm-built.txt").problems
    assert "no rate can be given" in problem


def gauges(name: str) -> dict[tuple[str, str], int]:
    return {(key.metric, key.cache_tier): value for key, value in told(name).gauges.items()}


def test_sizes_that_engines_tell_are_kept_and_ranks_that_repeat_one_are_not_summed() -> None:
    assert gauges("sglang-0.5.23-hicache-built.txt") == {
        (Metric.CAPACITY_TOKENS, "gpu"): 2 * 200_000,  # two data-parallel ranks, each told by two tensor-parallel ones
        (Metric.RESIDENT_TOKENS, "cpu"): 200_000,
        (Metric.CAPACITY_TOKENS, "cpu"): 800_000,
    }
    assert gauges("lmcache-0.5.6-mp-built.txt") == {
        (Metric.USED_BYTES, "cpu"): 2**30,
        (Metric.USED_BYTES, "unattributed"): 2**31 + 2**29,
    }
    assert gauges("lmcache-0.5.6-built.txt")[Metric.USED_BYTES, "disk"] == 12_000_000_000


def test_vllm_tells_its_caches_size_in_labels_and_without_a_model() -> None:
    adapted = told("vllm-0.32.0-cpu-after.txt")
    assert adapted.models == [("0", "smollm2")]
    assert gauges("vllm-0.32.0-cpu-after.txt") == {
        (Metric.CAPACITY_TOKENS, "gpu"): 23_296,
        (Metric.CAPACITY_BYTES, "gpu"): 2**30,
    }


def test_a_size_that_is_not_known_yet_is_no_size() -> None:
    text = 'vllm:prefix_cache_queries_total 1\nvllm:cache_config_info{kv_cache_size_tokens="None"} 1\n'
    adapted = read(text, "auto")
    assert (dict(adapted.gauges), adapted.problems) == ({}, ())


def test_llamacpp_has_a_hit_rate_where_it_counts_cached_tokens_too() -> None:
    text = (EXPOSITIONS / "llamacpp-built.txt").read_text() + "llamacpp:prompt_tokens_cache_total 2800\n"
    (engine,) = summary(read(text, "auto"))["engines"]
    assert (engine["prompt_tokens"], engine["computed_tokens"]) == (8000, 5200)
    assert engine["hit_tokens"]["unattributed"] == 2800


def test_lmcache_without_levels_leaves_all_hits_unattributed_and_never_counts_them_twice() -> None:
    text = (EXPOSITIONS / "lmcache-0.5.6-mp-built.txt").read_text()
    without = "\n".join(line for line in text.splitlines() if "_hit_l" not in line) + "\n"
    (engine,) = summary(read(without, "auto"))["engines"]
    assert engine["hit_tokens"] == {"gpu": 0, "cpu": 0, "disk": 0, "remote": 0, "unattributed": 33_280}


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("vllm-ray-built.txt", "ray_vllm_", "ray_vllm:"),
        ("lmcache-0.5.6-mp-built.txt", "lmcache_mp_lookup_", "lmcache_mp:lookup_"),
        ("kvbm-built.txt", "kvbm_", "dynamo_kvbm_"),
        ("sglang-0.5.23-hicache-built.txt", "sglang:", "sglang_"),
        ("trtllm-built.txt", "trtllm_", "trtllm:"),
    ],
)
def test_another_spelling_means_the_same(name: str, old: str, new: str) -> None:
    text = (EXPOSITIONS / name).read_text()
    assert summary(read(text.replace(old, new), "auto")) == summary(read(text, "auto"))


def test_opentelemetrys_dotted_names_mean_the_same() -> None:
    text = (
        '{"lmcache_mp.lookup.requested_tokens_total",model_name="m"} 100\n{"lmcache_mp.lookup.hit_tokens_total"} 40\n'
    )
    engines = summary(read(text, "auto"))["engines"]
    assert [(each["prompt_tokens"], each["hit_tokens"]["unattributed"]) for each in engines] == [(None, 40), (100, 0)]
