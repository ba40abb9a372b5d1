"""Whatever bytes a server sends: a sentence or samples, in bounded time, and never another error."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dashboard.sources.adapter import adapt
from dashboard.sources.detection import adapter_for, names_read_of, read
from dashboard.sources.exposition import ExpositionError, parse
from dashboard.sources.summary import summary
from dashboard.sources.tables import ADAPTERS

NAMES = ["vllm:prompt_tokens_total", "vllm:prompt_tokens_cached_by_source_total", "sglang:cached_tokens_total"]
NAMES += [
    "tierscope_time_to_first_token_seconds_bucket",
    "ray_vllm_prefix_cache_queries",
    "llamacpp:prompt_tokens_total",
]
VALUES = [
    "0",
    "1",
    "-1",
    "NaN",
    "+Inf",
    "-Inf",
    "1e400",
    "9" * 400,
    "0x10",
    "1_000",
    "",
    "1 -5",
    "1 2 3",
    "1.5",
    "true",
]
LABELS = [
    'engine="0"',
    'source="device"',
    'le="0.1"',
    'le="x"',
    'le="NaN"',
    'cache_tier="\x00"',
    'a="\\"',
    'a="\\n"',
    "a=",
    "",
]
text_lines = st.one_of(
    st.builds(
        lambda name, labels, value: f"{name}{{{','.join(labels)}}} {value}",
        st.sampled_from(NAMES),
        st.lists(st.sampled_from(LABELS), max_size=3),
        st.sampled_from(VALUES),
    ),
    st.builds(
        lambda name, kind: f"# TYPE {name} {kind}", st.sampled_from(NAMES), st.sampled_from(["counter", "x", ""])
    ),
    st.sampled_from(["# EOF", "#", "# HELP", "{", "}", '{"vllm.prompt_tokens"} 1', "# TYPE", "\r", "a" * 5000]),
    st.text(max_size=60),
)


def survives(text: str) -> None:
    for kind in ("auto", *ADAPTERS):
        try:
            adapted = read(text, kind)
        except ExpositionError:
            continue
        summary(adapted)
        for key, value in (*adapted.counters.items(), *adapted.gauges.items()):
            assert 0 <= value < 2**63
            assert "\x00" not in key.engine + key.model_name + key.detail
        assert len(adapted.problems) <= 21


@given(st.lists(text_lines, max_size=12))
@example(["a 1", "vllm:prompt_tokens_total " + "9" * 400])
@example(['vllm:prefix_cache_queries_total{engine="0"} 1 # {trace="x"} 1', "# EOF"])
def test_lines_that_are_nearly_right_never_raise_anything_else(lines: list[str]) -> None:
    survives("\n".join(lines))


@given(st.binary(max_size=400))
def test_bytes_never_raise_anything_else(data: bytes) -> None:
    survives(data.decode("utf-8", errors="replace"))


@given(st.lists(st.tuples(st.sampled_from(["0", "1"]), st.integers(0, 2**53)), min_size=1, max_size=6))
def test_readable_lines_are_summed_whatever_stands_between_them(told: list[tuple[str, int]]) -> None:
    lines = [f'vllm:prefix_cache_queries_total{{engine="0",pod="{n}",x="{x}"}} {v}' for n, (x, v) in enumerate(told)]
    text = "\nthis is no sample\n".join(lines)
    (engine,) = summary(read(text, "auto"))["engines"]
    assert engine["prompt_tokens"] == sum(value for _, value in told)


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "-1", "1e300", "9" * 400])
def test_a_size_that_is_no_size_is_left_out_and_told(value: str) -> None:
    text = f'sglang:prompt_tokens_total 1\nsglang:max_total_num_tokens{{tp_rank="0"}} {value}\n'
    adapted = read(text, "auto")
    assert dict(adapted.gauges) == {}
    assert adapted.problems


def test_one_series_told_twice_is_one_and_the_larger_counts() -> None:
    line = 'vllm:prefix_cache_queries_total{engine="0"} '
    adapted = read(f"{line}100\n{line}90\n{line}100\n", "auto")
    assert list(adapted.counters.values()) == [100]
    assert "told twice" in adapted.problems[0]


def test_a_text_with_a_million_problems_tells_some_of_them() -> None:
    exposition = parse("a 1\n" + "no sample\n" * 50_000)
    assert len(exposition.problems) == 20


def test_values_without_number_do_not_make_more_sentences_than_people_read() -> None:
    lines = "".join(f'vllm:prefix_cache_queries_total{{engine="0",pod="{n}"}} NaN\n' for n in range(3000))
    exposition = parse(lines)
    assert len(adapt(exposition, adapter_for(exposition, "auto")).problems) <= 30


@given(st.lists(text_lines, max_size=12))
def test_looking_only_at_wanted_lines_finds_the_same(lines: list[str]) -> None:
    """What a table reads of a text is the same, whether the rest of it was parsed or not."""
    text = "\n".join([*lines, 'vllm:prefix_cache_queries_total{engine="0",pod="own"} 1'])
    whole, some = parse(text), parse(text, names_read_of(None))
    wanted = [sample for sample in whole.samples if sample.name in names_read_of(None)]
    assert [repr(sample) for sample in some.samples] == [repr(sample) for sample in wanted]
    assert some.unreadable == whole.unreadable & names_read_of(None)
