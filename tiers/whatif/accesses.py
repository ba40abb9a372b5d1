"""Block accesses of many requests, laid end to end in order of arrival. Knows nothing about where they come from."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


class AccessesError(ValueError):
    """The arrays do not describe requests; the message is one sentence."""


@dataclass(frozen=True)
class Accesses:
    """Request r touches blocks `block_ids[starts[r] : starts[r + 1]]`, a prefix from its head on.

    `block_ids` int64 [A], dense from 0; `starts` int64 [R + 1]; `num_tokens` int64 [A], what each block holds of its
    prompt. Raises AccessesError.
    """

    block_ids: NDArray[np.int64]
    starts: NDArray[np.int64]
    num_tokens: NDArray[np.int64]

    def __post_init__(self) -> None:
        if len(self.starts) == 0 or self.starts[0] != 0 or self.starts[-1] != len(self.block_ids):
            raise AccessesError(f"The requests' starts do not go from 0 to {len(self.block_ids):,}, the accesses.")
        if np.any(np.diff(self.starts) < 0):
            raise AccessesError("A request starts before the one that precedes it.")
        if len(self.num_tokens) != len(self.block_ids):
            raise AccessesError(f"{len(self.num_tokens):,} token counts were given for {len(self.block_ids):,} blocks.")
        if len(self.block_ids) and (self.block_ids.min() < 0 or self.num_tokens.min() < 0):
            raise AccessesError("A block id or a token count is negative.")

    @property
    def num_requests(self) -> int:
        return len(self.starts) - 1

    @property
    def num_accesses(self) -> int:
        return len(self.block_ids)

    @property
    def num_unique(self) -> int:
        return int(self.block_ids.max()) + 1 if len(self.block_ids) else 0

    @property
    def total_tokens(self) -> int:
        return int(self.num_tokens.sum())


def collect(requests: Iterable[tuple[Sequence[Hashable], Sequence[int]]]) -> Accesses:
    """From (names of blocks, tokens in each) a request; names become ids in order of first appearance."""
    id_of: dict[Hashable, int] = {}
    ids: list[NDArray[np.int64]] = []
    tokens: list[NDArray[np.int64]] = []
    for names, counts in requests:
        ids.append(np.fromiter((id_of.setdefault(name, len(id_of)) for name in names), np.int64, len(names)))
        tokens.append(np.asarray(counts, np.int64))
    starts = np.cumsum([0, *map(len, ids)], dtype=np.int64)
    return Accesses(_joined(ids), starts, _joined(tokens))


def _joined(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def uniform(requests: Iterable[Sequence[Hashable]]) -> Accesses:
    """Requests whose blocks all hold one token, so that tokens and blocks are the same."""
    return collect((names, [1] * len(names)) for names in requests)
