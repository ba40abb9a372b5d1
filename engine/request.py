"""What goes into the engine and what comes out of it: token ids, sampling, events, usage.

Knows nothing about text, blocks or scheduling.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from engine.sampling import SamplingParams
from tiers import Tier
from tiers.books.tenants import MAX_NAME_BYTES

CacheUse = Literal["on", "off"]
FinishReason = Literal["stop", "length", "abort", "error"]
FINISH_REASONS: tuple[FinishReason, ...] = ("stop", "length", "abort", "error")


class RequestError(ValueError):
    """The request cannot be run as it is; the message is one sentence for the client, `code` a word for programs."""

    code = "invalid_request"


class TooLongError(RequestError):
    """The prompt, or the prompt with what may be generated, has more tokens than there is room for."""

    code = "context_length_exceeded"  # OpenAI's: clients look for it to shorten a conversation


class BusyError(RequestError):
    """Too many requests wait already; the same request may be sent again later."""


@dataclass(frozen=True)
class GenerationRequest:
    """One prompt to continue. `cache="off"` neither reads the tiers nor leaves anything in them.

    Only requests with the same `salt` share blocks; `tenant`, up to 32 bytes, says whose tokens these are in the
    counters and whose share of the tiers its blocks take.
    """

    request_id: str
    prompt_token_ids: list[int]
    sampling: SamplingParams
    salt: str = ""
    cache: CacheUse = "on"
    tenant: str = ""

    def __post_init__(self) -> None:
        if not self.request_id:
            raise RequestError("The request id is empty; give each request its own.")
        if not self.prompt_token_ids:
            raise RequestError("The prompt is empty; it must have at least one token.")
        if len(self.tenant.encode()) > MAX_NAME_BYTES:
            raise RequestError(f"The tenant's name has more than {MAX_NAME_BYTES} bytes.")


@dataclass(frozen=True)
class Usage:
    """What one request cost. Zeros before admission; `prompt_tokens == sum(hit_tokens) + computed_tokens` afterwards.

    `prompt_tiers` are runs of prompt tokens in order, (tier or None where computed, number of tokens).
    `ttft_seconds` and `queue_seconds` count from submission and are None where that moment was never reached.
    """

    prompt_tokens: int
    hit_tokens: Mapping[Tier, int]
    computed_tokens: int
    generated_tokens: int
    ttft_seconds: float | None = None
    queue_seconds: float | None = None
    slowest_tier: Tier | None = None
    num_preemptions: int = 0
    prompt_tiers: list[tuple[Tier | None, int]] = field(default_factory=list)


@dataclass(frozen=True)
class TokenEvent:
    """Tokens that the last step generated for the request."""

    token_ids: tuple[int, ...]


@dataclass(frozen=True)
class FinishedEvent:
    """The request's last event. `error` is one sentence, and None unless the reason is "error"."""

    finish_reason: FinishReason
    error: str | None
    usage: Usage


Event = TokenEvent | FinishedEvent
