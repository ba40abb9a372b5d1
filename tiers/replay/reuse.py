"""A replay's prompt tokens by the capacity of one LRU stack that would have served them.

As `tiers/whatif/shards_curve.py` counts live traffic, but block by block with the tokens that each holds, and for many
requests at once. Exact up to `MAX_BLOCKS` distinct blocks; below the newest of them a sample tells. Knows no tiers.
"""

from collections.abc import Sequence

import numpy as np

from tiers.books.compiled import Ints32, Ints64
from tiers.whatif.shards import ALL, EXACT, SAMPLED, Found, SampledStack
from tiers.whatif.shards_buckets import LARGEST_TOKENS, NUM_RECENT, ReuseCounts, capacity_bounds, coarse_bounds

MAX_BLOCKS = 1 << 20  # 56 MiB
_MOST_WAITING = 1 << 18  # blocks, however long nobody looks: a day of a trace may be one reading


class NoReplayReuse:
    """Where only what the tiers serve is asked."""

    def ask(self, keys: Ints32, tokens: Sequence[int], num_prompt_tokens: int, part: str = "") -> None:
        pass

    def counts(self) -> ReuseCounts:
        return ReuseCounts()

    def parts(self) -> dict[str, ReuseCounts]:
        return {}

    def check(self) -> None:
        pass


class _Tokens:
    """By the first of `bounds`, in tokens, that would have served them; what is not known yet is shared out later."""

    def __init__(self, bounds: tuple[int, ...], block_tokens: int) -> None:
        self.bounds = bounds
        self.known = np.zeros(len(bounds) + 1, np.int64)
        self._block_tokens = block_tokens
        self._bound_blocks = np.array(bounds, np.int64) // block_tokens
        self._recent = np.zeros(len(bounds) + 1, np.float64)
        self._num_unknown = 0

    def add(self, found: Found, rate: float, tokens: Ints64) -> None:
        places = np.searchsorted(self._bound_blocks, found.positions, side="right")
        is_sampled = found.kinds == SAMPLED
        is_known = (found.kinds == EXACT) | (is_sampled if rate == 1 else False)
        np.add.at(self.known, places[is_known], tokens[is_known])
        np.add.at(self._recent, places[is_sampled], tokens[is_sampled])
        self._num_unknown += int(tokens[~is_known].sum())

    def told(self, rate: float) -> ReuseCounts:
        self._share_out()
        return ReuseCounts(self.bounds, tuple(self.known.tolist()), rate)

    def _share_out(self) -> None:
        """What is not known counts as the newest that were sampled; before anything was, as never there."""
        total = self._recent.sum()
        if self._num_unknown:
            shares = self._recent / total if total else np.eye(len(self._recent))[-1]
            wanted = np.cumsum(shares) * self._num_unknown
            whole = np.minimum(np.round(wanted).astype(np.int64), self._num_unknown)
            whole[-1] = self._num_unknown
            self.known += np.diff(whole, prepend=0)
            self._num_unknown = 0
        self._recent *= min(1.0, NUM_RECENT * self._block_tokens / total) if total else 1.0


class ReplayReuse:
    """Blocks of `block_tokens` tokens, some of which may hold less."""

    def __init__(self, block_tokens: int, max_blocks: int = MAX_BLOCKS) -> None:
        self._block_tokens = block_tokens
        self._stack = SampledStack(max_blocks, threshold=ALL, deepest=max(1, LARGEST_TOKENS // block_tokens))
        self._tokens = _Tokens(capacity_bounds(block_tokens), block_tokens)
        self._parts: dict[str, _Tokens] = {}
        self._total = 0
        self._waiting: list[tuple[Ints32, Sequence[int], str]] = []
        self._num_waiting = 0

    def ask(self, keys: Ints32, tokens: Sequence[int], num_prompt_tokens: int, part: str = "") -> None:
        """A prompt whose first blocks hold so many `tokens`; the other `keys` are what its answer fills.

        It is counted once more, coarser, for the `part` that it belongs to; of these there are as many as names.
        """
        if part not in self._parts:
            self._parts[part] = _Tokens(coarse_bounds(self._block_tokens), self._block_tokens)
        self._waiting.append((keys, tokens, part))
        self._total += num_prompt_tokens
        for each in (self._tokens, self._parts[part]):
            each.known[-1] += num_prompt_tokens - sum(tokens)
        self._num_waiting += len(keys)
        if self._num_waiting >= _MOST_WAITING:
            self._book()

    def counts(self) -> ReuseCounts:
        """Of all requests until now; the counts only grow, and are `num_prompt_tokens` together."""
        self._book()
        return self._tokens.told(self._stack.rate)

    def parts(self) -> dict[str, ReuseCounts]:
        """By name; each part's counts are its prompts' tokens."""
        self._book()
        return {name: tokens.told(self._stack.rate) for name, tokens in self._parts.items()}

    def check(self) -> None:
        """Raises AssertionError where tokens were lost or made. The stack's own check walks a million places."""
        assert sum(self.counts().tokens) == self._total, "the reuse curve has not all prompt tokens"
        parts = sum(sum(part.tokens) for part in self.parts().values())
        assert parts == self._total, "the parts of the reuse curve are not the whole"

    def _book(self) -> None:
        waiting, self._waiting, self._num_waiting = self._waiting, [], 0
        if not waiting:
            return
        keys = np.concatenate([keys for keys, *_ in waiting]).view(np.int64)[:, 0].copy()
        tokens = np.zeros(len(keys), np.int64)
        starts = np.cumsum([0, *(len(keys) for keys, *_ in waiting)], dtype=np.int64)
        for start, (_, counts, _) in zip(starts, waiting, strict=False):
            tokens[start : start + len(counts)] = counts
        names = list(self._parts)
        of_request = np.array([names.index(part) for *_, part in waiting], np.int64)
        first = 0
        while first < len(waiting):
            rate, begin = self._stack.rate, starts[first]
            found, num_done = self._stack.access(keys[begin:], starts[first:] - begin)
            last = first + num_done
            of_block = np.repeat(of_request[first:last], np.diff(starts[first : last + 1]))
            self._add(found, rate, tokens[begin : starts[last]], names, of_block)
            first = last

    def _add(self, found: Found, rate: float, tokens: Ints64, names: Sequence[str], of_block: Ints64) -> None:
        self._tokens.add(found, rate, tokens)
        for number in np.unique(of_block).tolist():
            is_part = of_block == number
            part = Found(found.positions[is_part], found.kinds[is_part])
            self._parts[names[number]].add(part, rate, tokens[is_part])
