"""The best setup of several parts, each with a few choices: one part after the other. Pure; knows no tiers.

Trying every combination of three tiers with nine choices each is 729 simulations; one tier after the other, keeping
what was best until then, is 24.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

Choice = TypeVar("Choice")


def one_after_the_other(
    start: Sequence[Choice], choices: Sequence[Sequence[Choice]], cost: Callable[[tuple[Choice, ...]], float]
) -> tuple[Choice, ...]:
    """`choices` of each part; asks for the cost of what it tries, of `start` first, and gives the cheapest of these."""
    best = tuple(start)
    least = cost(best)
    for place, of_part in enumerate(choices):
        for choice in of_part:
            tried = (*best[:place], choice, *best[place + 1 :])
            if choice == best[place]:
                continue
            if (now := cost(tried)) < least:
                best, least = tried, now
    return best
