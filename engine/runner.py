"""What the engine asks of whatever computes its steps. Knows nothing about how that is done."""

from collections.abc import Sequence
from typing import Protocol

from engine.scheduler import Chunk


class Runner(Protocol):
    """Computes chunks: reads and writes keys and values through the chunks' block ids."""

    def run(self, chunks: Sequence[Chunk]) -> list[int]:
        """One token for each chunk with `is_last`, in the chunks' order."""
        ...
