"""A chunk says what was put into it; bytes that are none are refused with a sentence."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard import counters
from dashboard.chunks import NUM_BUCKETS, Buckets, ChunkError, pack, place_of, span_seconds, unpack
from dashboard.models import Resolution

_LARGEST = 2**63 - 1
edges = st.sampled_from([0, 1, -1, 127, 128, -128, -129, 2**15, -(2**15) - 1, 2**31, -(2**31) - 1, _LARGEST])
column = st.lists(edges | st.integers(-(2**40), 2**40), max_size=NUM_BUCKETS).map(
    lambda values: values + [0] * (NUM_BUCKETS - len(values))
)


@given(column, column)
def test_what_is_packed_comes_out_again(values: list[int], num_samples: list[int]) -> None:
    found = unpack(pack(Buckets(values, num_samples)))
    assert (list(found.values), list(found.num_samples)) == (values, num_samples)


def test_a_sum_that_no_column_holds_becomes_the_largest_that_it_does() -> None:
    beyond = [2**70, -(2**70)] + [0] * (NUM_BUCKETS - 2)
    assert list(unpack(pack(Buckets(beyond, [1] * NUM_BUCKETS))).values)[:2] == [_LARGEST, -_LARGEST]


def test_an_hour_of_increases_takes_about_two_bytes_each() -> None:
    values = [(number * 7_919) % 4_000 for number in range(NUM_BUCKETS)]
    assert len(pack(Buckets(values, [1] * NUM_BUCKETS))) < 2.5 * NUM_BUCKETS


@pytest.mark.parametrize(
    ("packed", "sentence"),
    [
        (b"", "begins with nothing"),
        (b"\x02\x00\x00abc", "begins with 020000, which is no form"),
        (b"\x01\x04\x00abc", "begins with 010400"),
        (b"\x01\x00\x00abc", "cannot be inflated"),
        (pack(Buckets.empty())[:-4], "cannot be inflated"),
        (b"\x01\x01" + pack(Buckets.empty())[2:], "has 720 bytes, not 360 buckets"),
    ],
)
def test_bytes_that_are_no_chunk_are_refused(packed: bytes, sentence: str) -> None:
    with pytest.raises(ChunkError, match=sentence):
        unpack(packed)


@given(st.sampled_from(Resolution.values), st.integers(0, 2**33))
def test_every_bucket_has_one_place(resolution: Any, second: int) -> None:
    start = second - second % resolution
    chunk_start, index = place_of(start, resolution)
    assert chunk_start % span_seconds(resolution) == 0
    assert (chunk_start + index * resolution, 0 <= index < NUM_BUCKETS) == (start, True)


@given(st.dictionaries(st.integers(1, _LARGEST), st.integers(0, _LARGEST)))
def test_a_run_s_counters_come_out_of_its_row_as_they_went_in(values: dict[int, int]) -> None:
    assert counters.unpack(counters.pack(values)) == values
