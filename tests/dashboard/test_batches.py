"""Pieces of a list: all of it, in order, none too large."""

import pytest

from dashboard.batches import batched, evenly


@pytest.mark.parametrize(("num", "most"), [(0, 3), (1, 3), (3, 3), (4, 3), (500, 96), (96, 96), (97, 96)])
def test_pieces_are_the_list_in_order_and_as_few_as_may_be(num: int, most: int) -> None:
    for pieces in (list(batched(range(num), most)), list(evenly(range(num), most))):
        assert [item for piece in pieces for item in piece] == list(range(num))
        assert all(0 < len(piece) <= most for piece in pieces)
        assert len(pieces) == -(-num // most)


def test_even_pieces_differ_by_less_than_there_are_pieces() -> None:
    sizes = [len(piece) for piece in evenly(range(500), 96)]
    assert max(sizes) - min(sizes) < len(sizes)
