"""Keeps what was asked last, so that a slider that moves does not read the same sums again. Knows no question."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Recent(Generic[T]):
    """The answers to the last `most` questions. Whoever asks names everything that the answer depends on."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[Hashable, T] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, question: Hashable, answer: Callable[[], T]) -> T:
        """Two who ask the same at once may both be answered anew."""
        with self._lock:
            if question in self._kept:
                self._kept.move_to_end(question)
                return self._kept[question]
        found = answer()
        self.keep(question, found)
        return found

    def keep(self, question: Hashable, answer: T) -> None:
        """In the place of what was kept for it."""
        with self._lock:
            self._kept.pop(question, None)
            self._kept[question] = answer
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)

    def find(self, question: Hashable) -> T | None:
        with self._lock:
            return self._kept.get(question)

    def check(self) -> None:
        assert len(self._kept) <= self._most, "more is kept than was meant to be"
