"""The tables against plain sets: what is known is found by its key, however often rows are given out again."""

import heapq
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiers.books import books as tables
from tiers.books.books import Books
from tiers.node import Node, ensure, find
from tiers.slots import Slots

ROOT = bytes(16)
# So few numbers that rows are taken, given back and taken again, and so small an index that places collide.
NUMBERS = st.lists(st.integers(0, 40), max_size=120)


def key_of(number: int) -> bytes:
    return bytes([number + 1]) * 16


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "FIRST_ROWS", 2)


@pytest.mark.usefixtures("small")
def test_what_was_added_is_found_and_what_was_removed_is_not() -> None:
    @given(NUMBERS)
    def compare(numbers: list[int]) -> None:
        books, known = Books(1), dict[int, Node]()
        for number in numbers:
            if number in known:
                known.pop(number).tidy()  # it has neither copies nor children
            else:
                known[number] = ensure(books, key_of(number), ROOT, 0)
            for other in range(41):
                node = find(books, key_of(other))
                assert (node is not None) == (other in known)
                assert node is None or node == known[other]
        books.check()

    compare()


@pytest.mark.usefixtures("small")
def test_a_tree_is_forgotten_from_its_leaves() -> None:
    @given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=5), max_size=20))
    def grow_and_forget(paths: list[list[int]]) -> None:
        books, nodes = Books(1), dict[bytes, Node]()
        for path in paths:
            for depth in range(len(path)):
                name, before = bytes(path[: depth + 1]), bytes(path[:depth])
                nodes[name] = ensure(books, name.ljust(16, b"\xff"), before.ljust(16, b"\xff"), depth)
        for name, node in nodes.items():
            below = {other for other in nodes if other.startswith(name) and other != name}
            assert {child.key.rstrip(b"\xff") for child in node.descendants()} == below
        for name in sorted(nodes, key=len, reverse=True):
            nodes[name].tidy()
        books.check()
        assert not len(books.known_nodes())

    grow_and_forget()


@pytest.mark.parametrize("num_total", [4_095, 4_097, 300_000])
def test_a_large_pool_gives_its_lowest_free_slot_first(num_total: int) -> None:
    rng = random.Random(num_total)
    slots, free, used = Slots(num_total), list(range(num_total)), list[int]()
    for _ in range(num_total - 100):
        used.append(heapq.heappop(free))
        assert slots.take() == used[-1]
    for _ in range(3_000):
        if used and rng.random() < 0.5:
            slot = used.pop(rng.randrange(len(used)))
            slots.give(slot)
            heapq.heappush(free, slot)
        elif free:
            used.append(heapq.heappop(free))
            assert slots.take() == used[-1]
    slots.check(set(used))
