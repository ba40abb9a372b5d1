"""How long an engine was looked at, by the steps that have a reading."""

import pytest

from dashboard.selectors.what_if import covered_seconds


@pytest.mark.parametrize(
    ("starts", "seconds"),
    [
        ([], 0),
        ([0], 10),
        (range(0, 600, 10), 600),  # every step
        (range(0, 600, 60), 600),  # read once a minute
        ([0, 10, 30, 40, 60, 70], 80),  # one reading in three falls on the edge of a step
        ([*range(0, 100, 10), *range(500, 600, 10)], 200),  # nobody looked in between
    ],
)
def test_each_step_stands_for_the_time_up_to_the_next_unless_nobody_looked(starts: list[int], seconds: int) -> None:
    assert covered_seconds(list(starts), 10, now=1_000) == seconds


def test_the_step_that_still_fills_counts_as_far_as_it_is() -> None:
    assert covered_seconds([0, 10, 20], 10, now=24) == 24
    assert covered_seconds([0, 10, 20], 10, now=19) == 20
