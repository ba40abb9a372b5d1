"""The tables: what each engine's names and labels mean, whatever the spelling; what is not told is never guessed."""

import json
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from dashboard.sources.detection import read
from dashboard.sources.exposition import ExpositionError
from dashboard.sources.summary import summary

NO_HITS = {"gpu": 0, "cpu": 0, "disk": 0, "remote": 0, "unattributed": 0}

VLLM = """\
# HELP vllm:prompt_tokens_total Number of prefill tokens processed.
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{engine="0",model_name="m"} 9930.0
vllm:prompt_tokens_created{engine="0",model_name="m"} 1.79e+09
# TYPE vllm:prompt_tokens_by_source_total counter
vllm:prompt_tokens_by_source_total{engine="0",model_name="m",source="local_compute"} 458.0
vllm:prompt_tokens_by_source_total{engine="0",model_name="m",source="local_cache_hit"} 7040.0
vllm:prompt_tokens_by_source_total{engine="0",model_name="m",source="external_kv_transfer"} 2432.0
# TYPE vllm:prompt_tokens_cached_by_source_total counter
vllm:prompt_tokens_cached_by_source_total{engine="0",model_name="m",source="device"} 7040.0
vllm:prompt_tokens_cached_by_source_total{engine="0",model_name="m",source="host"} 1792.0
vllm:prompt_tokens_cached_by_source_total{engine="0",model_name="m",source="p2p"} 128.0
vllm:prompt_tokens_cached_by_source_total{engine="0",model_name="m",source="disk"} 500.0
vllm:prompt_tokens_cached_by_source_total{engine="0",model_name="m",source="external_unspecified"} 12.0
"""
VLLM_MEANS = {
    "engine": "0",
    "model_name": "m",
    "prompt_tokens": 9930,
    "computed_tokens": 458,
    "hit_tokens": {"gpu": 7040, "cpu": 1792, "disk": 500, "remote": 128, "unattributed": 12},
}


EXPOSITIONS = Path(__file__).parent / "expositions"


def one(text: str, kind: str = "auto") -> dict[str, object]:
    engine: dict[str, object]
    (engine,) = summary(read(text, kind))["engines"]
    return engine


def openmetrics(text: str) -> str:
    """The same counters as OpenMetrics has them: the family without `_total`, an end mark, no colons lost."""
    families = text.replace("_total counter", " counter").replace(
        "HELP vllm:prompt_tokens_total", "HELP vllm:prompt_tokens"
    )
    return families + "# EOF\n"


def test_vllm_tells_every_tier_and_p2p_is_remote() -> None:
    assert one(VLLM) == VLLM_MEANS


@pytest.mark.parametrize(
    ("name", "computed", "hits"),
    [
        ("vllm-0.32.0-cpu-after.txt", 2890, {"gpu": 7040}),
        ("vllm-0.32.0-multitier-edited.txt", 458, {"gpu": 7040, "cpu": 1792, "disk": 512, "remote": 128}),
    ],
)
def test_a_real_vllm_text_comes_out_right(name: str, computed: int, hits: dict[str, int]) -> None:
    adapted = read((EXPOSITIONS / name).read_text(), "auto")
    (engine,) = summary(adapted)["engines"]
    assert (engine["prompt_tokens"], engine["computed_tokens"]) == (9930, computed)
    assert engine["hit_tokens"] == NO_HITS | hits
    assert adapted.problems == ()


@pytest.mark.parametrize(
    "spelling",
    [
        openmetrics,
        lambda text: text.replace("vllm:", "vllm_"),
        lambda text: text.replace("_total{", "{").replace("_total counter", " counter"),
        lambda text: "\n".join(line for line in text.splitlines() if not line.startswith("#")),
        lambda text: text.replace("\n", "\r\n"),
    ],
    ids=["openmetrics", "underscores", "without _total", "without comments", "crlf"],
)
def test_one_counter_is_the_same_in_every_spelling(spelling) -> None:  # type: ignore[no-untyped-def]
    assert one(spelling(VLLM)) == VLLM_MEANS


def test_openmetrics_exemplars_and_a_bad_line_in_it_cost_nothing_else() -> None:
    text = openmetrics(VLLM).replace("} 458.0", '} 458.0 # {trace_id="a"} 1.0 1700000000.0')
    assert one(text) == VLLM_MEANS
    assert one(text.replace("# EOF", "what is this\n# EOF")) == VLLM_MEANS


def test_what_vllm_tells_of_its_blocks_waits_is_read_where_it_was_switched_on() -> None:
    waits = """\
# TYPE vllm:kv_block_idle_before_evict_seconds histogram
vllm:kv_block_idle_before_evict_seconds_bucket{engine="0",le="60.0",model_name="m"} 40.0
vllm:kv_block_idle_before_evict_seconds_bucket{engine="0",le="+Inf",model_name="m"} 100.0
vllm:kv_block_idle_before_evict_seconds_count{engine="0",model_name="m"} 100.0
vllm:kv_block_idle_before_evict_seconds_sum{engine="0",model_name="m"} 6400.5
# TYPE vllm:kv_block_reuse_gap_seconds histogram
vllm:kv_block_reuse_gap_seconds_bucket{engine="0",le="1.0",model_name="m"} 30.0
vllm:kv_block_reuse_gap_seconds_bucket{engine="0",le="60.0",model_name="m"} 210.0
vllm:kv_block_reuse_gap_seconds_bucket{engine="0",le="+Inf",model_name="m"} 230.0
"""
    counters = {key[2:]: value for key, value in _counters(VLLM + waits).items()}
    assert counters["idle_blocks", "gpu", ""] == 100
    assert counters["idle_microseconds", "gpu", ""] == 6_400_500_000
    gaps = {detail: value for (metric, _, detail), value in counters.items() if metric == "reuse_gaps"}
    assert gaps == {"1": 30, "60": 180, "+Inf": 20}


def _counters(text: str) -> dict[tuple[str, str, str, str, str], int]:
    return dict(read(text, "auto").counters.items())


def test_vllm_before_032_tells_the_gpu_and_leaves_the_rest_unattributed() -> None:
    text = """\
vllm:prefix_cache_queries_total{engine="0",model_name="m"} 1000
vllm:prefix_cache_hits_total{engine="0",model_name="m"} 600
vllm:external_prefix_cache_queries_total{engine="0",model_name="m"} 400
vllm:external_prefix_cache_hits_total{engine="0",model_name="m"} 100
"""
    assert read(text, "auto").kind == "vllm_old"
    assert one(text) == {
        "engine": "0",
        "model_name": "m",
        "prompt_tokens": 1000,
        "computed_tokens": 300,
        "hit_tokens": NO_HITS | {"gpu": 600, "unattributed": 100},
    }


def test_sglang_is_summed_over_streaming_and_its_total_is_no_tier() -> None:
    text = """\
sglang:prompt_tokens_total{model_name="m",is_streaming="true"} 700
sglang:prompt_tokens_total{model_name="m",is_streaming="false"} 300
sglang:cached_tokens_total{model_name="m",cache_source="device"} 200
sglang:cached_tokens_total{model_name="m",cache_source="host"} 100
sglang:cached_tokens_total{model_name="m",cache_source="storage_MooncakeStore"} 40
sglang:cached_tokens_total{model_name="m",cache_source="storage_HiCacheFile"} 30
sglang:cached_tokens_total{model_name="m",cache_source="storage"} 20
sglang:cached_tokens_total{model_name="m",cache_source="total"} 10
"""
    expected = {"gpu": 200, "cpu": 100, "disk": 30, "remote": 40, "unattributed": 30}
    assert one(text) == {
        "engine": "",
        "model_name": "m",
        "prompt_tokens": 1000,
        "computed_tokens": 600,
        "hit_tokens": expected,
    }
    assert one(text.replace("sglang:", "sglang_"))["hit_tokens"] == expected


def test_lmcache_multi_process_sees_no_gpu_so_computed_tokens_are_unknown() -> None:
    text = """\
lmcache_mp_lookup_requested_tokens_total{model_name="m",cache_salt="a"} 512
lmcache_mp_lookup_requested_tokens_total{model_name="m",cache_salt="b"} 256
lmcache_mp_lookup_hit_l1_tokens_total{model_name="m",cache_salt="a"} 256
lmcache_mp_lookup_hit_l2_tokens_total{model_name="m",cache_salt="b"} 256
lmcache_mp_lookup_hit_tokens_total{model_name="m",cache_salt="a"} 512
"""
    assert one(text) == {
        "engine": "",
        "model_name": "m",
        "prompt_tokens": 768,
        "computed_tokens": None,
        "hit_tokens": NO_HITS | {"cpu": 256, "unattributed": 256},
    }
    assert "whole chunks" in read(text, "auto").note


def test_a_note_about_hits_beyond_the_gpu_is_said_only_of_a_text_that_tells_some() -> None:
    text = "vllm:prefix_cache_queries_total 100\nvllm:prefix_cache_hits_total 30\n"
    assert read(text, "auto").note == ""
    assert "beyond the gpu tier" in read(f"{text}vllm:external_prefix_cache_hits_total 5\n", "auto").note


def test_lmcache_in_process_tells_the_gpu_and_slower_tiers_together() -> None:
    text = (
        "lmcache:num_prompt_tokens_total 100\nlmcache:num_vllm_hit_tokens_total 30\nlmcache:num_hit_tokens_total 20\n"
    )
    assert one(text)["hit_tokens"] == NO_HITS | {"gpu": 30, "unattributed": 20}
    assert one(text)["computed_tokens"] == 50


def test_kvbm_matched_tokens_have_no_denominator_where_the_build_tells_none() -> None:
    text = "kvbm_matched_tokens 128\nkvbm_host_cache_hit_rate 0.7\n"
    assert one(text)["prompt_tokens"] is None
    assert one(text)["hit_tokens"] == NO_HITS | {"unattributed": 128}
    assert one(text + "kvbm_requested_tokens_total 512\n")["prompt_tokens"] == 512


def test_tensorrt_llm_names_the_tiers_as_we_do() -> None:
    text = 'trtllm_prompt_tokens_total 900\ntrtllm_prompt_cached_tokens_total{cache_tier="host"} 100\n'
    assert one(text)["hit_tokens"] == NO_HITS | {"cpu": 100}


def test_our_own_text_is_read_by_our_own_names_although_it_speaks_vllms_too() -> None:
    text = VLLM + 'tierscope_prompt_tokens_total{engine="local",model_name="m"} 5\n'
    assert read(text, "auto").kind == "tierscope"


def test_a_label_value_that_is_new_is_unattributed_and_not_lost() -> None:
    text = VLLM.replace('source="host"', 'source="holographic"')
    assert one(text)["hit_tokens"] == {"gpu": 7040, "cpu": 0, "disk": 500, "remote": 128, "unattributed": 1804}


def test_two_engines_and_two_models_stay_apart() -> None:
    other = VLLM.replace('engine="0"', 'engine="1"').replace("9930", "10000")
    engines = summary(read(VLLM + other, "auto"))["engines"]
    assert [(each["engine"], each["prompt_tokens"]) for each in engines] == [("0", 9930), ("1", 10000)]


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "-7680", "1e300"])
def test_a_value_that_is_no_count_spoils_its_counter_only_and_is_told(value: str) -> None:
    adapted = read(
        VLLM.replace(
            '7040.0\nvllm:prompt_tokens_cached_by_source_total{engine="0",model_name="m",source="host"',
            f'{value}\nvllm:prompt_tokens_cached_by_source_total{{engine="0",model_name="m",source="host"',
        ),
        "auto",
    )
    assert summary(adapted)["engines"][0]["hit_tokens"]["cpu"] == 1792
    assert [key for key in adapted.counters if key.cache_tier == "gpu"] == []
    assert any("is no count" in problem for problem in adapted.problems)


def test_a_broken_histogram_bucket_spoils_its_histogram_and_no_other() -> None:
    lines = [f'vllm:time_to_first_token_seconds_bucket{{engine="{e}",le="{le}"}} {n}' for e, le, n in _BUCKETS]
    text = "vllm:prefix_cache_queries_total 1\n" + "\n".join(lines) + "\n"
    whole = read(text, "auto").counters
    told = {(key.engine, key.detail): value for key, value in whole.items() if key.metric == "ttft"}
    assert told == {("0", "0.5"): 1, ("0", "1"): 2, ("0", "+Inf"): 3, ("1", "0.5"): 5}
    broken = read(text.replace(' 3"', "").replace('le="1.0"} 3', 'le="1.0"} NaN'), "auto").counters
    assert [(key.engine, value) for key, value in broken.items() if key.metric == "ttft"] == [("1", 5)]


_BUCKETS = [("0", "0.5", 1), ("0", "1.0", 3), ("0", "+Inf", 6), ("1", "5e-1", 5)]


@pytest.mark.parametrize("odd", ["\x00", "\t", "\u202e", "\u2028", "\x7f"])
def test_names_are_such_as_pages_can_be_asked_for(odd: str) -> None:
    told = read(VLLM.replace('engine="0"', f'engine="a{odd}b"').replace('"m"', f'"m{odd}"'), "vllm")
    assert {(key.engine, key.model_name) for key in told.counters} == {("a?b", "m?")}


def test_a_label_that_never_repeats_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashboard.sources.adapter.MAX_SERIES", 10)
    text = "".join(f'sglang:prompt_tokens_total{{model_name="m{index}"}} 1\n' for index in range(11))
    with pytest.raises(ExpositionError, match="11 series; at most 10"):
        read(text, "auto")


def test_a_vllm_text_without_its_split_by_source_still_adds_up() -> None:
    text = "\n".join(line for line in VLLM.splitlines() if "tokens_by_source" not in line)
    assert one(text)["computed_tokens"] == 9930 - 7040 - 1792 - 500 - 128 - 12


@pytest.mark.parametrize(
    "text", ["", "\n\n", "<html><body>404</body></html>", '{"json": true}', "\x00\x01\x02", "# EOF\n", "{" * 1000]
)
def test_what_is_no_metrics_text_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(ExpositionError, match="This is not a metrics text"):
        read(text, "auto")


def test_a_text_of_an_unknown_engine_is_refused_with_what_was_expected() -> None:
    with pytest.raises(ExpositionError, match=r"No known engine.*expected Tierscope, vLLM"):
        read("node_cpu_seconds_total 5\n", "auto")


def test_a_text_without_end_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashboard.sources.exposition.MAX_BYTES", 1000)
    with pytest.raises(ExpositionError, match="at most 1,000 are read"):
        read(VLLM, "auto")


def test_the_command_prints_one_json_object(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "metrics.txt"
    file.write_text(VLLM)
    call_command("adapt", str(file))
    assert json.loads(capsys.readouterr().out) == {"kind": "vllm", "engines": [VLLM_MEANS]}
    call_command("adapt", str(file), "--kind", "vllm_old")
    assert json.loads(capsys.readouterr().out)["engines"] == []


@pytest.mark.parametrize("content", [None, b"\xff\xfe nothing", b""])
def test_the_command_says_in_a_sentence_what_is_wrong_with_a_file(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "metrics.txt"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(CommandError, match=r"This is not a metrics text|No such file"):
        call_command("adapt", str(file))
