"""Which sizes are worth their price: the frontier has what nothing beats and nothing else, limits are kept."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiers.whatif.advisor import (
    MAX_CHOICES,
    Choice,
    Sizes,
    choices,
    frontier,
    grid,
    knee,
    within_budget,
    within_seconds,
)

found = st.lists(
    st.builds(Choice, st.just((0,)), st.just((0.0,)), st.integers(0, 9).map(float), st.integers(0, 9).map(float)),
    min_size=1,
    max_size=30,
)


def beats(one: Choice, other: Choice) -> bool:
    is_as_good = one.cost <= other.cost and one.seconds <= other.seconds
    return is_as_good and (one.cost, one.seconds) != (other.cost, other.seconds)


@given(found)
def test_the_frontier_is_what_nothing_beats(every: list[Choice]) -> None:
    front = frontier(every)
    unbeaten = {(c.cost, c.seconds) for c in every if not any(beats(other, c) for other in every)}
    assert [(c.cost, c.seconds) for c in front] == sorted(unbeaten)


@given(found, st.integers(0, 9))
def test_limits_are_kept_by_the_best_that_keeps_them(every: list[Choice], limit: int) -> None:
    front = frontier(every)
    affordable = [c.seconds for c in every if c.cost <= limit]
    fast_enough = [c.cost for c in every if c.seconds <= limit]
    best, cheapest = within_budget(front, limit), within_seconds(front, limit)
    assert (best.seconds if best else None) == min(affordable, default=None)
    assert (cheapest.cost if cheapest else None) == min(fast_enough, default=None)


def test_the_knee_is_where_more_money_begins_to_buy_less() -> None:
    front = [
        Choice((n,), (1.0,), cost, seconds) for n, (cost, seconds) in enumerate([(0, 10), (1, 2), (5, 1), (10, 0)])
    ]
    assert knee(front) == front[1]
    assert knee(front[:2]) is None


@given(found)
def test_the_knee_lies_on_the_frontier_between_its_ends(every: list[Choice]) -> None:
    front = frontier(every)
    bend = knee(front)
    assert (bend is None) == (len(front) < 3)
    assert bend is None or bend in front[1:-1]


class Evaluate:
    """Each tier serves up to a common limit of what the faster ones leave; cost and time are sums."""

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def __call__(self, sizes: Sizes) -> Choice:
        left, served = self.limit, []
        for size in sizes:
            served.append(float(min(left, size)))
            left -= min(left, size)
        return Choice(sizes, tuple(served), float(sum(sizes)), float(left))


@given(
    st.lists(st.sets(st.integers(0, 9), min_size=1, max_size=4).map(sorted), min_size=1, max_size=3), st.integers(0, 12)
)
def test_no_choice_has_room_from_which_nothing_is_read_unless_it_cannot_be_less(
    grids: list[list[int]], limit: int
) -> None:
    tried = list(choices(grids, Evaluate(limit)))
    assert tuple(min(each) for each in grids) in {choice.sizes for choice in tried}
    for choice in tried:
        for size, served, each in zip(choice.sizes, choice.served, grids, strict=True):
            assert served > 0 or size == min(each)


def test_more_combinations_than_anybody_waits_for_are_refused() -> None:
    with pytest.raises(ValueError, match="10,000 combinations"):
        list(choices([range(10)] * 4, Evaluate(1)))
    assert MAX_CHOICES < 10_000


@given(st.integers(0, 2**20), st.integers(0, 2**44), st.integers(1, 2**44), st.integers(1, 60))
def test_a_grid_has_today_the_most_and_nothing_smaller_than_the_least(
    least: int, today: int, most: int, num: int
) -> None:
    if most < max(least, 1):
        with pytest.raises(ValueError, match="no grid"):
            grid(least, today, most, num)
        return
    sizes = grid(least, today, most, num)
    assert sizes == sorted(set(sizes))
    assert len(sizes) <= num + 2
    assert today in sizes
    assert (0 in sizes) or least > 0
    assert all(least <= size <= most or size in (0, today) for size in sizes)
