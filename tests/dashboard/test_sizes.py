"""Sizes as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.sizes import MAX_BYTES, exact_size, format_size, parse_size


@pytest.mark.parametrize(
    ("text", "num_bytes"),
    [
        ("0", 0),
        ("4096", 4096),
        ("4_096", 4096),
        ("2 GiB", 2 * 2**30),
        ("2gib", 2 * 2**30),
        ("2G", 2 * 2**30),
        ("2GB", 2 * 10**9),
        ("512 MiB", 512 * 2**20),
        ("1.5 GiB", 3 * 2**29),
        (".5 KiB", 512),
        (" 3 kb ", 3000),
        ("7 bytes", 7),
        ("-0", 0),
    ],
)
def test_a_size_is_read_as_people_mean_it(text: str, num_bytes: int) -> None:
    assert parse_size(text) == num_bytes


@pytest.mark.parametrize("text", ["100 Mib", "100 MIB", "100 mib"])
def test_a_small_b_never_means_bits(text: str) -> None:
    assert parse_size(text) == 100 * 2**20


@pytest.mark.parametrize("text", ["", "abc", "GiB", "1,5 GiB", "½ GiB", "1e9", "inf", "nan GiB", "2 XiB", "٣", "1 2"])
def test_what_is_not_a_size_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a size; write it like 2 GiB, 512 MiB or 0\."):
        parse_size(text)


def test_a_negative_size_is_refused() -> None:
    with pytest.raises(ValueError, match=r"“-1 GiB” is negative; a size is 0 or more\."):
        parse_size("-1 GiB")


@pytest.mark.parametrize("text", ["8 EiB", "9223372036854775808"])
def test_a_size_that_no_integer_holds_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is too large"):
        parse_size(text)


def test_endless_digits_are_refused_without_repeating_them_all() -> None:
    with pytest.raises(ValueError, match="is not a size") as caught:
        parse_size("9" * 1_000_000)
    assert len(str(caught.value)) < 150


@pytest.mark.parametrize(
    ("num_bytes", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (3 * 2**29, "1.5 GiB"),
        (2**30 - 1, "1 GiB"),
        (100 * 2**30, "100 GiB"),
    ],
)
def test_a_size_is_shown_in_its_shortest_form(num_bytes: int, text: str) -> None:
    assert format_size(num_bytes) == text


@pytest.mark.parametrize(
    ("num_bytes", "text"),
    [(3 * 2**29, "1.5 GiB"), (100_270_080, "97920 KiB"), (2**30 + 1, "1073741825 B"), (MAX_BYTES, f"{MAX_BYTES} B")],
)
def test_the_exact_form_takes_the_largest_unit_that_loses_nothing(num_bytes: int, text: str) -> None:
    assert exact_size(num_bytes) == text


@given(st.integers(0, MAX_BYTES))
def test_the_exact_form_reads_back_as_the_same_number(num_bytes: int) -> None:
    assert parse_size(exact_size(num_bytes)) == num_bytes


@given(st.integers(0, MAX_BYTES))
def test_the_short_form_is_within_half_a_hundredth_of_its_unit(num_bytes: int) -> None:
    number, unit = format_size(num_bytes).split()
    factor = 1 if unit == "B" else 1024 ** ("KMGTPE".index(unit[0]) + 1)
    assert abs(float(number) * factor - num_bytes) <= 0.00501 * factor


@given(st.text(max_size=20))
def test_any_text_gives_a_size_or_a_sentence(text: str) -> None:
    try:
        num_bytes = parse_size(text)
    except ValueError:
        return
    assert 0 <= num_bytes <= MAX_BYTES
