"""A trace's requests by a sample of their blocks, as many as are meant to be kept however long it is.

A block belongs to it if its key, a hash, lies below a threshold, which is halved when there are too many: so all of a
block's accesses do, or none (SHARDS: Waldspurger et al., FAST'15, fixed size). Knows nothing about tiers or files.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tiers.books.compiled import Ints32, Ints64
from tiers.replay.names import chained
from tiers.replay.replayer import Asked
from tiers.whatif.shards import ALL, hashes

# A simulation of three tiers then takes about half a second (bench policies_sampled, with its error).
MAX_ACCESSES = 100_000


@dataclass(frozen=True)
class SampledRequest:
    """`keys` int32 [n, 4] of a prompt's blocks, then its answer's; `block_tokens` of the prompt's."""

    keys: Ints32
    block_tokens: Sequence[int]


class RequestSample:
    """Requests in their order. Those of which nothing is left are not kept."""

    def __init__(self, max_accesses: int = MAX_ACCESSES) -> None:
        self.requests: list[SampledRequest] = []
        self.num_requests = 0
        self.num_accesses = 0  # that are kept
        self.largest_block = 1  # in tokens
        self._max_accesses = max_accesses
        self._threshold = ALL
        self._other_tokens = 0

    @property
    def rate(self) -> float:
        return self._threshold / ALL

    @property
    def prompt_tokens(self) -> float:
        """What the sampled blocks hold, and as much of what lies in no block."""
        return sum(sum(each.block_tokens) for each in self.requests) + self.rate * self._other_tokens

    def add(self, request: Asked) -> None:
        keys = chained([*request.block_ids, *request.output_block_ids])
        self.num_requests += 1
        self.largest_block = max(self.largest_block, *request.block_tokens, 1)
        self._other_tokens += request.num_prompt_tokens - sum(request.block_tokens)
        self._keep(SampledRequest(keys, request.block_tokens))
        while self.num_accesses > self._max_accesses:
            self._halve()

    def _keep(self, request: SampledRequest) -> None:
        is_kept = hashes(_halves(request.keys)) < self._threshold
        if not is_kept.any():
            return
        tokens = [each for each, kept in zip(request.block_tokens, is_kept.tolist(), strict=False) if kept]
        self.requests.append(SampledRequest(request.keys[is_kept], tokens))
        self.num_accesses += int(is_kept.sum())

    def _halve(self) -> None:
        self._threshold //= 2
        before, self.requests, self.num_accesses = self.requests, [], 0
        for request in before:
            self._keep(request)


def _halves(keys: Ints32) -> Ints64:
    """int64 [n]: half of each key."""
    return np.ascontiguousarray(keys).view(np.int64)[:, 0]
