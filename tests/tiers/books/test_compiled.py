"""What is compiled does not manage memory unless it says so: else every call of a part counts who has each table."""

import os
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from tiers.books.ahead import ask_for
from tiers.books.compiled import ENTRIES, Ints64, entry, making_entry, part, sources
from tiers.books.counter import next_of
from tiers.books.layout import empty_table


@part
def _second(numbers: Ints64) -> Any:
    return numbers[1]


@entry
def _sum_of_seconds(numbers: Ints64) -> int:
    total = 0
    for _ in range(len(numbers)):
        ask_for(numbers.ctypes.data)
        total += _second(numbers)
    return total


@entry
def _new(size: int) -> Ints64:
    return np.zeros(size, np.int64)


@making_entry
def _newly_made(size: int) -> Ints64:
    return np.zeros(size, np.int64)


@pytest.fixture(autouse=True, scope="module")
def others_warm_up_what_is_theirs() -> None:
    for own in (_sum_of_seconds, _new, _newly_made):
        ENTRIES.remove(own)


@pytest.mark.parametrize("name", ["books/moves.py", "policies/lru.py", "whatif/stack.py", "read_turns.py"])
def test_code_that_is_kept_is_not_that_of_other_sources_with_the_same_times_and_sizes(
    tmp_path: Path, name: str
) -> None:
    """As they have in what was built to be the same whenever it is built."""
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    seen = set()
    for number in b"12":
        path.write_bytes(b"from compiled import aside\n\n\n@aside\ndef one():\n    return %d\n" % number)
        os.utime(path, (1, 1))
        seen.add(sources(tmp_path))
    assert len(seen) == 2


def test_a_part_sees_the_arrays_of_its_entry() -> None:
    assert _sum_of_seconds(np.arange(5)) == 5


def test_an_entry_that_would_make_an_array_is_refused_unless_it_says_so() -> None:
    with pytest.raises(numba.errors.NumbaError):
        _new(3)
    assert _newly_made(3).tolist() == [0, 0, 0]


def test_numbers_are_counted_up_from_what_is_there() -> None:
    counter = np.array([7])
    assert [next_of(counter) for _ in range(3)] == [7, 8, 9]


@pytest.mark.parametrize("num_columns", [7, 16, 22])
def test_a_table_begins_with_a_line_of_the_cache(num_columns: int) -> None:
    for num_rows in (1, 3, 1000):
        table = empty_table(num_rows, num_columns)
        assert table.ctypes.data % 64 == 0
        assert table.shape == (num_rows, num_columns)
        assert table.flags.c_contiguous
        assert not table.any()
