"""Sizes in the sentences of tiers and engine read as people say them, and are exact."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.sizes import format_size, parse_size
from tiers.sizes import in_words


@pytest.mark.parametrize(
    ("num_bytes", "words"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1023, "1,023 bytes"),
        (1024, "1 KiB (1,024 bytes)"),
        (737_280, "720 KiB (737,280 bytes)"),
        (3 * 2**29, "1.5 GiB (1,610,612,736 bytes)"),
        (100_270_080, "95.62 MiB (100,270,080 bytes)"),
        (-3 * 2**20, "-3 MiB (-3,145,728 bytes)"),
        (2**70, "1024 EiB (1,180,591,620,717,411,303,424 bytes)"),
    ],
)
def test_a_size_is_said_in_its_unit_and_exactly(num_bytes: int, words: str) -> None:
    assert in_words(num_bytes) == words


@given(st.integers(1024, 2**62))
def test_both_parts_can_be_typed_back_in_the_admin(num_bytes: int) -> None:
    short, exactly = in_words(num_bytes).rstrip(")").split(" (")
    assert parse_size(exactly.replace(",", "")) == num_bytes
    assert abs(parse_size(short) - parse_size(format_size(num_bytes))) <= 1024**6 // 50
