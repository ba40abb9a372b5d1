"""What an address may ask for, and the sentence that says what was wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.views.params import RANGES, BadParameterError, Query, read_query

NOW = 1_800_000_000.5


def test_without_a_period_the_last_fifteen_minutes_are_meant() -> None:
    query = read_query({}, NOW)
    assert (query.range_name, query.end - query.start, query.engine, query.model_name) == ("15m", 900, None, None)


@pytest.mark.parametrize(("name", "seconds"), RANGES.items())
def test_a_range_ends_now(name: str, seconds: int) -> None:
    query = read_query({"range": name}, NOW)
    assert (query.start, query.end) == (int(NOW) - seconds, int(NOW))


def test_a_custom_period_may_be_written_with_a_zone() -> None:
    query = read_query({"start": "2026-11-29T10:00:00+01:00", "end": "2026-11-29T10:30:00Z"}, NOW)
    assert (query.end - query.start, query.range_name) == (5400, "")


def test_a_custom_period_may_be_written_in_unix_seconds() -> None:
    assert read_query({"start": "1700000000", "end": "1700000600"}, NOW).start == 1_700_000_000


def test_a_custom_period_ends_now_at_the_latest() -> None:
    assert read_query({"start": "1799999000", "end": "1900000000"}, NOW).end == int(NOW)


def test_engine_and_model_are_taken_as_they_are() -> None:
    query = read_query({"engine": "local", "model": "org/Model-1B"}, NOW)
    assert (query.engine, query.model_name) == ("local", "org/Model-1B")


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"range": "2h"}, "range is “2h”, but it has to be one of 5m"),
        ({"start": "1700000000"}, "belong together"),
        ({"start": "yesterday", "end": "1700000000"}, "start is “yesterday”, but it has to be a time"),
        ({"start": "1700000000", "end": "1700000010"}, "at least one minute"),
        ({"start": "1700000600", "end": "1700000000"}, "at least one minute"),
        ({"start": "1900000000", "end": "1900000600"}, "future"),
        ({"start": "0", "end": "1700000000"}, "20 years"),
        ({"engine": "x" * 201}, "engine is not a name"),
        ({"model": "a\x00b"}, "model is not a name"),
        ({"start": "99999999999999", "end": "1"}, "start is"),
        ({"start": "0001-01-01T00:00:00+14:00", "end": "1700000000"}, "start"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(params: dict[str, str], sentence: str) -> None:
    with pytest.raises(BadParameterError, match=r"\.$") as caught:
        read_query(params, NOW)
    assert sentence in str(caught.value)


texts = st.one_of(st.text(max_size=20), st.sampled_from(["1h", "1700000000", "2026-01-01", "٣", "-5", "1e9"]))


@given(st.dictionaries(st.sampled_from(["range", "start", "end", "engine", "model"]), texts))
def test_any_address_gives_a_period_or_a_sentence(params: dict[str, str]) -> None:
    query, sentence = read_or_refuse(params)
    assert sentence.endswith(".") if query is None else query.end - query.start >= 60 and query.end <= NOW


def read_or_refuse(params: dict[str, str]) -> tuple[Query | None, str]:
    try:
        return read_query(params, NOW), ""
    except BadParameterError as error:
        return None, str(error)
