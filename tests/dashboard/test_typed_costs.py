"""What an admin typed: speeds become seconds at every position of a prompt, and what is no speed is said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.typed_costs import NOTHING_TYPED, Prefill, parse_loads, parse_prefill, typed_costs

speeds = st.floats(1.0, 100_000.0)
points = st.dictionaries(st.integers(0, 500), speeds, min_size=1, max_size=5)


def slowly(prefill: Prefill, position: float) -> float:
    """Seconds a token at one position, straight from the definition."""
    (first, seconds), *others = prefill.points
    for place, (then, following) in enumerate(others):
        if first <= position <= then:
            return seconds + (following - seconds) * (position - first) / (then - first)
        if position > then:
            (first, seconds) = others[place]
    return seconds if position >= first else prefill.points[0][1]


@given(points, st.floats(0, 600), st.floats(0, 600))
def test_seconds_are_the_sum_over_the_positions(typed: dict[int, float], one: float, other: float) -> None:
    start, end = sorted((one, other))
    prefill = parse_prefill(", ".join(f"{position}: {typed[position]}" for position in sorted(typed)))
    num_steps = 4_000
    step = (end - start) / num_steps
    summed = sum(slowly(prefill, start + (number + 0.5) * step) * step for number in range(num_steps))
    assert prefill.seconds(start, end) == pytest.approx(summed, rel=0.02, abs=1e-9)
    assert prefill.seconds(end, start) == 0.0 or start == end


def test_one_speed_is_the_same_everywhere() -> None:
    assert parse_prefill(" 8000 ").seconds(1_000, 9_000) == pytest.approx(1.0)


def test_nothing_typed_is_nothing() -> None:
    assert typed_costs(" ", "") == NOTHING_TYPED


def test_loads_are_bytes_a_second_by_tier() -> None:
    assert parse_loads("cpu: 2, Disk:0.5") == {"cpu": 2 * 2**30, "disk": 2**29}


@pytest.mark.parametrize(
    "text",
    [
        "fast",
        "0",
        "-3",
        "nan",
        "inf",
        "0: 10, 0: 20",
        "5: 10, 2: 20",
        "a: 3",
        "1: 2, 3",
        "-1: 5",
        f"{'0' * 12}{'9' * 370}: 5",
    ],
)
def test_what_is_no_speed_of_computing_is_refused_with_what_was_expected(text: str) -> None:
    with pytest.raises(ValueError, match="expected tokens a second, like 12000"):
        parse_prefill(text)


@pytest.mark.parametrize("text", ["20", "gpu: 3", "cpu: 0", "cpu: 1, cpu: 2", "tape: 1", "cpu=3"])
def test_what_is_no_speed_of_a_tier_is_refused_with_what_was_expected(text: str) -> None:
    with pytest.raises(ValueError, match="expected GiB a second from cpu, disk or remote"):
        parse_loads(text)
