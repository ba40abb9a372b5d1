"""Who says what, and when, in the sample traffic: a fixed plan. Knows nothing about HTTP, models or tiers.

Its size is chosen for the embedded defaults (gpu 136 blocks = 2,176 tokens, cpu 272 blocks = 4,352 tokens): the
conversations together are larger than both, so that blocks cascade down to disk, and their users come back at three
paces, so that prefixes are found in all three tiers.
"""

import random
from dataclasses import dataclass

from dashboard.sample_texts import DAYS, DETAILS, INSTRUCTIONS, OPENINGS, QUESTIONS

_NUM_DETAILS = 4


@dataclass(frozen=True)
class Turn:
    """The next message of a conversation; the conversation's earlier turns and their answers come before it."""

    conversation: int
    instructions: str
    message: str


# Each letter is a user: some talk on without a pause (gpu), those of a group take turns (cpu), and o, p and the first
# group come back when the others have pushed their prefixes out of both (disk).
SCHEDULE = "oopqqaaabbcdefcdefghijghijabklmnklmncdefghijopqabklcdmnop"


def plan(seed: int = 1) -> list[Turn]:
    """The whole of it; the same seed gives the same text, another seed gives prefixes that no cache has seen."""
    generator = random.Random(seed)
    speakers = [ord(letter) - ord("a") for letter in SCHEDULE]
    return [Turn(speaker, _instructions(speaker, seed), _message(generator)) for speaker in speakers]


def _instructions(speaker: int, seed: int) -> str:
    """A few users share each assistant. The edition keeps a repeated run from finding everything in the cache."""
    return f"Edition {seed}. {INSTRUCTIONS[speaker % len(INSTRUCTIONS)]}"


def _message(generator: random.Random) -> str:
    numbers = {"n": generator.randrange(1000, 9999), "m": generator.randrange(3, 60), "day": generator.choice(DAYS)}
    parts = [
        generator.choice(OPENINGS),
        *generator.sample(DETAILS, _NUM_DETAILS),
        generator.choice(QUESTIONS),
    ]
    return " ".join(parts).format(**numbers)
