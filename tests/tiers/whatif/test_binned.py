"""The counted curve says what the exact one says: equal at its bounds, between its neighbours elsewhere."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiers import WriteMode
from tiers.whatif import HitCurve
from tiers.whatif.binned import BinnedCurve, depths, shaped
from tiers.whatif.stack import NEVER

BLOCK = 16
BOUNDS = (16, 32, 48, 80, 128, 208, 336, 544)
MODES = st.sampled_from([WriteMode.WRITE_BACK, WriteMode.WRITE_THROUGH])
accesses = st.lists(st.tuples(st.one_of(st.integers(0, 33), st.just(int(NEVER))), st.integers(1, BLOCK)), max_size=60)


def both(drawn: list[tuple[int, int]]) -> tuple[HitCurve, BinnedCurve]:
    """By stack position, and by the bucket of the capacity that a hit needs: one block more than its position."""
    exact = HitCurve()
    exact.add(np.array([p for p, _ in drawn], np.int64), np.array([w for _, w in drawn], np.int64))
    tokens, never = [0] * len(BOUNDS), 0
    for position, weight in drawn:
        if position == NEVER:
            never += weight
        else:
            needed = (position + 1) * BLOCK
            tokens[next(i for i, bound in enumerate(BOUNDS) if needed <= bound)] += weight
    return exact, BinnedCurve(BOUNDS, tuple(tokens), never)


@given(accesses)
def test_at_its_bounds_it_is_the_exact_curve(drawn: list[tuple[int, int]]) -> None:
    exact, binned = both(drawn)
    assert binned.total == exact.total
    assert [binned.hits(bound) for bound in BOUNDS] == exact.at([bound // BLOCK for bound in BOUNDS])
    assert binned.hits(None) == exact.hits(None)
    assert binned.hits(0) == binned.hits(-5) == 0


@given(accesses, st.integers(0, 700), st.integers(0, 700))
def test_between_two_bounds_it_grows_and_stays_between_their_values(
    drawn: list[tuple[int, int]], one: int, other: int
) -> None:
    exact, binned = both(drawn)
    smaller, larger = sorted((one, other))
    assert binned.hits(smaller) <= binned.hits(larger)
    below = max((bound for bound in BOUNDS if bound <= one), default=0)
    above = min((bound for bound in BOUNDS if bound >= one), default=BOUNDS[-1])
    assert exact.hits(below // BLOCK) <= binned.hits(one) <= exact.hits(above // BLOCK)


@given(accesses, st.lists(st.sampled_from([0, *BOUNDS]), min_size=1, max_size=4), MODES)
def test_tiers_that_hold_a_bound_each_get_the_exact_split(
    drawn: list[tuple[int, int]], sizes: list[int], mode: WriteMode
) -> None:
    exact, binned = both(drawn)
    ends = [end for _, end in depths(sizes, [mode] * len(sizes))]
    if set(ends) <= {0, *BOUNDS}:
        assert binned.split(sizes, [mode] * len(sizes)) == exact.split([size // BLOCK for size in sizes], mode)


@given(accesses, st.lists(st.tuples(st.integers(0, 600), MODES), min_size=1, max_size=4))
def test_tiers_together_serve_what_the_deepest_stack_serves(
    drawn: list[tuple[int, int]], tiers: list[tuple[int, WriteMode]]
) -> None:
    _, binned = both(drawn)
    sizes, modes = zip(*tiers, strict=True)
    assert sum(binned.split(sizes, modes)) == binned.hits(depths(sizes, modes)[-1][1])


def test_a_tier_of_copies_below_exclusive_ones_serves_what_lies_deeper_than_all_of_them() -> None:
    modes = [WriteMode.WRITE_BACK, WriteMode.WRITE_BACK, WriteMode.WRITE_THROUGH]
    assert depths([100, 200, 1_000], modes) == [(0, 100), (100, 300), (300, 1_000)]
    assert depths([100, 200, 250], modes) == [(0, 100), (100, 300), (300, 300)]


@pytest.mark.parametrize(
    ("bounds", "tokens", "never"), [((16, 16), (1, 1), 0), ((0, 16), (1, 1), 0), ((16,), (), 0), ((16,), (1,), -1)]
)
def test_what_is_no_curve_is_refused(bounds: tuple[int, ...], tokens: tuple[int, ...], never: int) -> None:
    with pytest.raises(ValueError, match="reuse curve"):
        BinnedCurve(bounds, tokens, never)


# -- a part that is counted coarser ------------------------------------------------------------------------------------
COARSE = (32, 128, 544)


def coarser(drawn: list[tuple[int, int]]) -> BinnedCurve:
    fine = both(drawn)[1]
    ends = [0, *(fine.hits(bound) for bound in COARSE)]
    return BinnedCurve(COARSE, tuple(np.diff(ends).tolist()), fine.never_tokens)


@given(accesses, accesses)
def test_a_shaped_part_is_exact_at_its_bounds_and_loses_no_token(
    one: list[tuple[int, int]], other: list[tuple[int, int]]
) -> None:
    whole = both(one + other)[1]
    for part in (one, other):
        exact, found = both(part)[0], shaped(coarser(part), whole)
        assert found.bounds == BOUNDS
        assert found.total == exact.total
        assert [found.hits(bound) for bound in COARSE] == exact.at([bound // BLOCK for bound in COARSE])


@given(accesses)
def test_the_whole_shaped_by_itself_is_itself(drawn: list[tuple[int, int]]) -> None:
    whole = both(drawn)[1]
    assert shaped(coarser(drawn), whole) == whole


def test_where_the_whole_counted_nothing_a_part_is_spread_evenly() -> None:
    assert shaped(BinnedCurve((32,), (10,), 0), BinnedCurve((16, 32, 64), (0, 0, 3), 0)).tokens == (5, 5, 0)


def test_bounds_that_the_finer_curve_does_not_have_are_refused() -> None:
    with pytest.raises(ValueError, match="have to be among those of the finer one"):
        shaped(BinnedCurve((33,), (1,), 0), BinnedCurve((16, 32), (0, 1), 0))
