"""Block accesses of many requests, laid end to end in order of arrival. Knows nothing about where they come from."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class AccessesError(ValueError):
    """The arrays do not describe requests; the message is one sentence."""


@dataclass(frozen=True)
class Accesses:
    """Request r touches blocks `block_ids[starts[r] : starts[r + 1]]`, a prefix from its head on.

    `block_ids` int64 [A], dense from 0; `starts` int64 [R + 1]; `num_tokens` int64 [A], what each block holds of its
    prompt; `is_asked` bool [A], False for blocks that only fill; `prompt_tokens` int64 [R], at least what the blocks
    hold: the rest is never a hit; `is_counted` bool [R]. Raises AccessesError.
    """

    block_ids: NDArray[np.int64]
    starts: NDArray[np.int64]
    num_tokens: NDArray[np.int64]
    is_asked: NDArray[np.bool_]
    prompt_tokens: NDArray[np.int64]
    is_counted: NDArray[np.bool_]

    def __post_init__(self) -> None:
        if len(self.starts) == 0 or self.starts[0] != 0 or self.starts[-1] != len(self.block_ids):
            raise AccessesError(f"The requests' starts do not go from 0 to {len(self.block_ids):,}, the accesses.")
        if np.any(np.diff(self.starts) < 0):
            raise AccessesError("A request starts before the one that precedes it.")
        if not len(self.num_tokens) == len(self.is_asked) == len(self.block_ids):
            raise AccessesError(f"{len(self.num_tokens):,} token counts were given for {len(self.block_ids):,} blocks.")
        if not len(self.prompt_tokens) == len(self.is_counted) == len(self.starts) - 1:
            raise AccessesError(
                f"{len(self.prompt_tokens):,} prompts were given for {len(self.starts) - 1:,} requests."
            )
        if len(self.block_ids) and (self.block_ids.min() < 0 or self.num_tokens.min() < 0):
            raise AccessesError("A block id or a token count is negative.")
        if self.never_tokens < 0:
            raise AccessesError("The blocks hold more tokens than the prompts have.")

    @property
    def num_requests(self) -> int:
        return len(self.starts) - 1

    @property
    def num_counted(self) -> int:
        """Requests."""
        return int(np.count_nonzero(self.is_counted))

    @property
    def num_accesses(self) -> int:
        return len(self.block_ids)

    @property
    def num_unique(self) -> int:
        return int(self.block_ids.max()) + 1 if len(self.block_ids) else 0

    @property
    def num_asked(self) -> int:
        """Accesses that look a block up."""
        return int(np.count_nonzero(self.is_asked))

    @property
    def num_unique_asked(self) -> int:
        return len(np.unique(self.block_ids[self.is_asked]))

    @property
    def total_tokens(self) -> int:
        return int(self.prompt_tokens.sum())

    @property
    def never_tokens(self) -> int:
        """In no block that is looked up: the end of a prompt."""
        return self.total_tokens - int(self.num_tokens.sum())


class Prompt(NamedTuple):
    """Blocks by name with the tokens in each, all tokens, and blocks that fill afterwards."""

    names: Sequence[Hashable]
    tokens: Sequence[int]
    num_tokens: int
    filled: Sequence[Hashable] = ()


def collect(prompts: Iterable[Prompt]) -> Accesses:
    """Names become ids in order of first appearance."""
    id_of: dict[Hashable, int] = {}
    ids: list[NDArray[np.int64]] = []
    tokens: list[NDArray[np.int64]] = []
    asked: list[int] = []
    totals: list[int] = []
    for names, counts, num_tokens, filled in prompts:
        touched = [*names, *filled] if filled else names
        ids.append(np.fromiter((id_of.setdefault(name, len(id_of)) for name in touched), np.int64, len(touched)))
        tokens.append(np.concatenate((np.asarray(counts, np.int64), np.zeros(len(filled), np.int64))))
        asked += (len(names), len(filled))
        totals.append(num_tokens)
    starts = np.cumsum([0, *map(len, ids)], dtype=np.int64)
    is_asked = np.repeat(np.tile([True, False], len(totals)), asked)
    return Accesses(
        *(_joined(ids), starts, _joined(tokens), is_asked),
        prompt_tokens=np.asarray(totals, np.int64),
        is_counted=np.ones(len(totals), np.bool_),
    )


def _joined(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def uniform(requests: Iterable[Sequence[Hashable]]) -> Accesses:
    """Requests whose blocks all hold one token, so that tokens and blocks are the same."""
    return collect(Prompt(names, [1] * len(names), len(names)) for names in requests)
