"""Blocks that nobody reads any more though no lease has let them go: what was loaded for requests that have ended.

Knows nothing about why.
"""

from tiers.books import steps
from tiers.books.books import Books
from tiers.keys import BlockKey
from tiers.node import find, oldest_first


class Late:
    """By key: a block may be forgotten before it is touched."""

    def __init__(self, books: Books) -> None:
        self._books = books
        self._keys: list[BlockKey] = []

    def add(self, key: BlockKey) -> None:
        self._keys.append(key)

    def touch(self) -> None:
        """All of them, so that none is older than its children."""
        if not self._keys:
            return
        known = [node for key in reversed(self._keys) if (node := find(self._books, key))]
        for node in oldest_first(known):
            if not node.is_pinned:
                steps.touch_all(*self._books.tables, node.row)
        self._keys.clear()
