"""Deterministic traffic for tests and benchmarks: multi-turn chats over a few shared system prompts, as token ids.

Knows nothing about engines; the same seed always gives the same requests.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class WorkItem:
    """One request. `is_aborted` asks the driver to abort it some time after it was sent."""

    request_id: str
    prompt_token_ids: list[int]
    max_tokens: int
    is_aborted: bool = False


@dataclass(frozen=True)
class ChatShape:
    """Sizes in tokens; a prompt is a system prompt and the chat's turns so far, cut at `max_prompt`."""

    num_system_prompts: int = 3
    system_tokens: int = 96
    num_chats: int = 12
    turn_tokens: int = 40
    answer_tokens: int = 12
    max_prompt: int = 400
    vocab_size: int = 97
    abort_rate: float = 0.0


def chats(seed: int, shape: ChatShape) -> Iterator[WorkItem]:
    """Endless: some chat gets its next turn; a chat that grew too long starts over with new words."""
    rng = random.Random(seed)
    systems = [_tokens(rng, shape.system_tokens, shape.vocab_size) for _ in range(shape.num_system_prompts)]
    histories = [list(systems[index % len(systems)]) for index in range(shape.num_chats)]
    number = 0
    while True:
        chat = rng.randrange(shape.num_chats)
        history = histories[chat]
        history += _tokens(rng, rng.randint(1, shape.turn_tokens), shape.vocab_size)
        if len(history) > shape.max_prompt:
            history[:] = [*rng.choice(systems), *_tokens(rng, shape.turn_tokens, shape.vocab_size)]
        answer = rng.randint(1, shape.answer_tokens)
        yield WorkItem(f"chat-{number}", list(history), answer, rng.random() < shape.abort_rate)
        number += 1


def _tokens(rng: random.Random, count: int, vocab_size: int) -> list[int]:
    return [rng.randrange(vocab_size) for _ in range(count)]
