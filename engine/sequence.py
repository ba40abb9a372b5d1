"""One request's life inside the engine: its tokens, block keys, lease, and what was counted at its admission.

Knows nothing about other requests, budgets or the model.
"""

from collections.abc import Callable
from collections.abc import Sequence as Seq
from dataclasses import dataclass
from itertools import groupby

from engine.request import Event, FinishReason, GenerationRequest, Usage
from engine.sampling import SamplingState
from tiers import TIERS, BlockKey, Lease, Tier, chain_keys, next_key


def blocks_for(num_tokens: int, block_size: int) -> int:
    """Blocks that hold so many tokens, the last one perhaps in part."""
    return -(-num_tokens // block_size)


@dataclass(frozen=True)
class Admission:
    """Where a prompt's tokens came from when the request was first admitted: counted once, never again.

    Blocks of `skipped_tiers` were found after those of `hit_tiers`, and are computed because that is cheaper.
    """

    at: float
    prompt_tokens: int
    block_size: int
    hit_tiers: tuple[Tier, ...]
    skipped_tiers: tuple[Tier, ...] = ()

    def __post_init__(self) -> None:
        if self.num_hit_tokens >= self.prompt_tokens:
            raise ValueError(
                f"{self.num_hit_tokens} tokens of a prompt of {self.prompt_tokens} were reported as hits; "
                "the last token of a prompt is always computed."
            )

    @property
    def num_hit_tokens(self) -> int:
        return len(self.hit_tiers) * self.block_size

    @property
    def computed_tokens(self) -> int:
        return self.prompt_tokens - self.num_hit_tokens

    @property
    def hit_tokens(self) -> dict[Tier, int]:
        return {tier: self.hit_tiers.count(tier) * self.block_size for tier in TIERS}

    @property
    def slowest_tier(self) -> Tier | None:
        return max(self.hit_tiers, key=TIERS.index, default=None)

    @property
    def prompt_tiers(self) -> list[tuple[Tier | None, int]]:
        runs: list[tuple[Tier | None, int]] = [
            (tier, sum(1 for _ in run) * self.block_size) for tier, run in groupby(self.hit_tiers)
        ]
        return [*runs, (None, self.computed_tokens)]


class Sequence:
    """Mutable state of one request. Only the stepping thread touches it once it is submitted."""

    __slots__ = (
        "admission",
        "arrival",
        "block_size",
        "first_token_at",
        "keys",
        "last_token_at",
        "lease",
        "max_tokens_total",
        "num_computed",
        "num_preemptions",
        "num_prompt",
        "num_registered",
        "on_event",
        "origins",
        "request",
        "root",
        "sampling_state",
        "submitted_at",
        "token_ids",
    )

    def __init__(
        self,
        request: GenerationRequest,
        *,
        root: BlockKey,
        block_size: int,
        max_model_len: int,
        on_event: Callable[[Event], None],
        now: float,
    ) -> None:
        self.request = request
        self.root = root
        self.block_size = block_size
        self.on_event = on_event
        self.token_ids = list(request.prompt_token_ids)
        self.num_prompt = len(self.token_ids)
        self.max_tokens_total = min(self.num_prompt + request.sampling.max_tokens, max_model_len)
        self.keys = chain_keys(root, self.token_ids, block_size) if self.uses_cache else []
        self.sampling_state = SamplingState(request.sampling)
        self.submitted_at = now
        self.arrival = 0
        self.num_computed = 0
        self.num_registered = 0
        self.num_preemptions = 0
        self.lease: Lease | None = None
        self.origins: dict[BlockKey, Tier] = {}
        self.admission: Admission | None = None
        self.first_token_at: float | None = None
        self.last_token_at: float | None = None

    @property
    def request_id(self) -> str:
        return self.request.request_id

    @property
    def uses_cache(self) -> bool:
        return self.request.cache == "on"

    @property
    def num_remaining(self) -> int:
        """Tokens whose keys and values are still to be computed; 1 while decoding."""
        return len(self.token_ids) - self.num_computed

    @property
    def num_generated(self) -> int:
        return len(self.token_ids) - self.num_prompt

    @property
    def blocks_now(self) -> int:
        return blocks_for(len(self.token_ids), self.block_size)

    @property
    def blocks_at_most(self) -> int:
        """The last generated token is never fed back, so it needs no room."""
        return max(blocks_for(self.max_tokens_total - 1, self.block_size), self.blocks_now)

    def hittable_keys(self) -> Seq[BlockKey]:
        """Keys of the full blocks that may be reused: never the one with the last token, whose logits are needed."""
        return self.keys[: (len(self.token_ids) - 1) // self.block_size]

    def admit(self, now: float) -> bool:
        """Take over what the lease holds already. True the first time, when it has to be counted."""
        assert self.lease is not None
        hit_tiers = tuple(self.lease.hit_tiers)
        self.num_registered = len(hit_tiers)
        self.num_computed = len(hit_tiers) * self.block_size
        if self.admission is not None:
            return False
        self.admission = Admission(now, self.num_prompt, self.block_size, hit_tiers, tuple(self.lease.skipped_tiers))
        return True

    def give_back(self) -> Lease:
        """The lease, which the sequence no longer has; its tokens stay and are computed or found again."""
        lease, self.lease = self.lease, None
        assert lease is not None
        self.num_computed = self.num_registered = 0
        return lease

    def filled_blocks(self) -> tuple[int, list[BlockKey], BlockKey]:
        """Blocks that are full and computed, but not registered yet: the first index, keys, the key before them."""
        first = self.num_registered
        num_filled = self.num_computed // self.block_size if self.uses_cache else 0
        keys = [self._key(index) for index in range(first, num_filled)]
        return first, keys, self._key(first - 1) if keys else self.root

    def _key(self, index: int) -> BlockKey:
        if index < 0:
            return self.root
        if index == len(self.keys):
            start = index * self.block_size
            self.keys.append(next_key(self._key(index - 1), self.token_ids[start : start + self.block_size]))
        return self.keys[index]

    def append(self, token_id: int, eos_ids: frozenset[int], now: float) -> FinishReason | None:
        """Take the token that was sampled; says why the request ends here, if it does."""
        self.token_ids.append(token_id)
        self.first_token_at = now if self.first_token_at is None else self.first_token_at
        self.last_token_at = now
        if token_id in eos_ids and not self.request.sampling.ignore_eos:
            return "stop"
        return "length" if len(self.token_ids) >= self.max_tokens_total else None

    def usage(self) -> Usage:
        admission = self.admission
        if admission is None:
            return Usage(0, dict.fromkeys(TIERS, 0), 0, self.num_generated, num_preemptions=self.num_preemptions)
        return Usage(
            prompt_tokens=admission.prompt_tokens,
            hit_tokens=admission.hit_tokens,
            computed_tokens=admission.computed_tokens,
            generated_tokens=self.num_generated,
            ttft_seconds=None if self.first_token_at is None else self.first_token_at - self.submitted_at,
            queue_seconds=admission.at - self.submitted_at,
            slowest_tier=admission.slowest_tier,
            num_preemptions=self.num_preemptions,
            prompt_tiers=admission.prompt_tiers,
        )
