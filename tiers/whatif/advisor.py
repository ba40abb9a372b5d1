"""Which tier sizes are worth their price: the Pareto frontier of cost against a time, its knee, the best within limits.

A bounded search over grids of sizes. Plain Python; knows neither money nor time: what a size vector costs and how long
it takes is asked of whoever calls.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

MAX_CHOICES = 2_500
Sizes = tuple[int, ...]


@dataclass(frozen=True)
class Choice:
    """One size for each tier, the share that each then serves, what that costs, and how long it takes.

    `setup` is what else it changes, in the words of whoever evaluated it.
    """

    sizes: Sizes
    served: tuple[float, ...]
    cost: float
    seconds: float
    setup: str = ""


def grid(least: int, today: int, most: int, num_sizes: int) -> list[int]:
    """About `num_sizes` sizes in equal ratios up to `most`, with today's; also none where `least` is 0.

    Raises ValueError where `most` is less than `least`, or is nothing.
    """
    if most < max(least, 1):
        raise ValueError(f"There is no grid of sizes from {least:,} to {most:,}.")
    first = max(least, most >> 2 * num_sizes, 1)
    ratio = (most / first) ** (1 / max(1, num_sizes - 1))
    sizes = {min(most, round(first * ratio**step)) for step in range(num_sizes)}
    return sorted({*sizes, today, *([] if least else [0])})


def choices(grids: Sequence[Sequence[int]], evaluate: Callable[[Sizes], Choice]) -> Iterator[Choice]:
    """Every combination but those in which a tier that can be smaller has room and serves nothing.

    Nobody is advised to pay for that. Raises ValueError for more than MAX_CHOICES combinations.
    """
    num_choices = prod(map(len, grids))
    if num_choices > MAX_CHOICES:
        raise ValueError(f"{num_choices:,} combinations of sizes were asked for; at most {MAX_CHOICES:,} are tried.")
    for sizes in product(*grids):
        choice = evaluate(sizes)
        sized = zip(sizes, choice.served, grids, strict=True)
        if all(share > 0 or size == min(each) for size, share, each in sized):
            yield choice


def frontier(found: Sequence[Choice]) -> list[Choice]:
    """Those that no other beats in one and equals in the other, cheapest first; of equals the first."""
    best: list[Choice] = []
    for choice in sorted(found, key=lambda each: (each.cost, each.seconds)):
        if not best or choice.seconds < best[-1].seconds:
            best.append(choice)
    return best


def knee(front: Sequence[Choice]) -> Choice | None:
    """Where more money begins to buy less: farthest below the line from the cheapest to the fastest.

    After Satopää, Albrecht, Irwin & Raghavan, *Finding a “kneedle” in a haystack* (ICDCSW 2011), without smoothing,
    since the frontier has no noise. None for fewer than three choices, which have no bend.
    """
    if len(front) < 3:
        return None
    first, last = front[0], front[-1]
    width, height = last.cost - first.cost, first.seconds - last.seconds
    return max(front[1:-1], key=lambda c: (first.seconds - c.seconds) / height - (c.cost - first.cost) / width)


def within_budget(front: Sequence[Choice], budget: float) -> Choice | None:
    """The fastest that costs no more; None where even the cheapest does."""
    return max((choice for choice in front if choice.cost <= budget), key=lambda choice: choice.cost, default=None)


def within_seconds(front: Sequence[Choice], seconds: float) -> Choice | None:
    """The cheapest that takes no longer; None where even the fastest does."""
    return min((choice for choice in front if choice.seconds <= seconds), key=lambda c: c.cost, default=None)
