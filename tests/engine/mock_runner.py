"""A model without weights: the next token is a hash of everything that the blocks hold for the context.

It keeps a 64-bit state a token in the pool, so that a block with wrong, stale or torn content gives wrong tokens.
"""

import hashlib
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from engine.scheduler import Chunk

VOCAB_SIZE = 97
STATE_BYTES = 8
_MASK = (1 << 64) - 1


class Slots(Protocol):
    def read(self, slot: int) -> memoryview: ...


def state_after(previous: int, token_id: int, position: int) -> int:
    """The "keys and values" of a token: they depend on it, its position and all tokens before it."""
    mixed = (previous * 6364136223846793005 + (token_id + 1) * 1442695040888963407 + position) & _MASK
    return (mixed ^ (mixed >> 29)) & _MASK


def token_after(states: Sequence[int]) -> int:
    digest = hashlib.blake2b(np.asarray(states, dtype=np.uint64).tobytes(), digest_size=8).digest()
    return int.from_bytes(digest, "little") % VOCAB_SIZE


def expected_tokens(prompt: Sequence[int], num_tokens: int) -> list[int]:
    """What any correct engine generates greedily with this model, computed without any cache."""
    states: list[int] = []
    tokens = list(prompt)
    for index in range(len(prompt) + num_tokens):
        if index >= len(prompt):
            tokens.append(token_after(states))
        states.append(state_after(states[-1] if states else 0, tokens[index], index))
    return tokens[len(prompt) :]


class MockRunner:
    """Runs chunks over a pool whose blocks hold `block_size` states each."""

    def __init__(self, pool: Slots, block_size: int) -> None:
        self._pool = pool
        self._block_size = block_size
        self.num_steps = 0
        self.fail_next: Exception | None = None

    def run(self, chunks: Sequence[Chunk]) -> list[int]:
        self.num_steps += 1
        if self.fail_next is not None:
            error, self.fail_next = self.fail_next, None
            raise error
        return [token for chunk in chunks if (token := self._run_one(chunk)) is not None]

    def _run_one(self, chunk: Chunk) -> int | None:
        states = self._states(chunk)
        for position in range(chunk.start, chunk.start + chunk.length):
            previous = int(states[position - 1]) if position else 0
            states[position] = state_after(previous, chunk.sequence.token_ids[position], position)
        self._write(chunk, states)
        return token_after(states.tolist()) if chunk.is_last else None

    def _states(self, chunk: Chunk) -> npt.NDArray[np.uint64]:
        """States [start + length], those of the context read from the pool."""
        end = chunk.start + chunk.length
        num_context_blocks = -(-chunk.start // self._block_size)
        blocks = [self._block(slot) for slot in chunk.block_ids[:num_context_blocks]]
        context = np.concatenate(blocks)[: chunk.start] if blocks else np.empty(0, np.uint64)
        return np.concatenate([context, np.zeros(end - chunk.start, np.uint64)])

    def _write(self, chunk: Chunk, states: npt.NDArray[np.uint64]) -> None:
        for position in range(chunk.start, chunk.start + chunk.length):
            block = self._block(chunk.block_ids[position // self._block_size])
            block[position % self._block_size] = states[position]

    def _block(self, slot: int) -> npt.NDArray[np.uint64]:
        return np.frombuffer(self._pool.read(slot), dtype=np.uint64)
