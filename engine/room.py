"""What fits: which requests the engine can ever run, and how small the gpu tier may become.

Knows nothing about which blocks are where; it counts in whole requests.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from engine.engine_config import EngineConfig
from engine.request import GenerationRequest, TooLongError
from engine.sequence import Sequence, blocks_for
from tiers import RefusedError
from tiers.sizes import in_words


@dataclass(frozen=True)
class Floor:
    """The smallest size that the gpu tier accepts at the moment, and why."""

    num_blocks: int
    num_bytes: int
    reason: str


class Room:
    """The gpu tier's size as requests see it. Read by any thread, changed by the stepping thread."""

    def __init__(self, config: EngineConfig, block_bytes: int) -> None:
        self._config = config
        self._block_bytes = block_bytes
        self._gpu_blocks = config.tiers[0].capacity_bytes // block_bytes

    @property
    def max_request_tokens(self) -> int:
        return min(self._config.max_model_len, self._gpu_blocks * self._config.block_size)

    def validate(self, request: GenerationRequest) -> None:
        """Raises TooLongError with the numbers if the request is too long for the model or for the gpu tier."""
        num_prompt, wanted = len(request.prompt_token_ids), request.sampling.max_tokens
        if num_prompt + wanted > self._config.max_model_len:
            raise TooLongError(
                f"The prompt has {num_prompt:,} tokens and up to {wanted:,} more were asked for; together they may "
                f"be at most {self._config.max_model_len:,}."
            )
        num_blocks = blocks_for(num_prompt + wanted - 1, self._config.block_size)
        if num_blocks > self._gpu_blocks:
            raise TooLongError(self._too_large(num_blocks))

    def why_not(self, sequence: Sequence) -> str | None:
        """A sentence if the sequence can not run to its end in the gpu tier as it is now."""
        return None if sequence.blocks_at_most <= self._gpu_blocks else self._too_large(sequence.blocks_at_most)

    def floor(self, unfinished: Iterable[Sequence]) -> Floor:
        """The least that the gpu tier may have now: for attention at all, and for every unfinished request alone."""
        num_blocks = blocks_for(self._config.min_gpu_tokens, self._config.block_size)
        reason = f"attention needs room for {self._config.min_gpu_tokens} tokens"
        for sequence in unfinished:
            if sequence.blocks_at_most > num_blocks:
                num_blocks = sequence.blocks_at_most
                reason = f"request {sequence.request_id} may need so much until it ends"
        return Floor(num_blocks, num_blocks * self._block_bytes, reason)

    def refuse_below_floor(self, capacity_bytes: int, unfinished: Iterable[Sequence]) -> None:
        """Raises RefusedError if attention or an unfinished request needs more than that."""
        floor = self.floor(unfinished)
        if capacity_bytes < floor.num_bytes:
            raise RefusedError(
                f"The gpu tier cannot shrink to {in_words(capacity_bytes)} now: at least {in_words(floor.num_bytes)}, "
                f"{floor.num_blocks:,} blocks, are needed, because {floor.reason}."
            )

    def resized(self, capacity_bytes: int) -> None:
        self._gpu_blocks = capacity_bytes // self._block_bytes

    def _too_large(self, num_blocks: int) -> str:
        block_size, gpu_blocks = self._config.block_size, self._gpu_blocks
        return (
            f"The request needs {num_blocks:,} blocks of {block_size} tokens for its prompt and max_tokens; the gpu "
            f"tier has {gpu_blocks:,} ({gpu_blocks * block_size:,} tokens). Ask for less or enlarge the tier."
        )
