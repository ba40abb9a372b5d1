"""What computing and loading take, as an admin typed it for an engine that does not tell. Pure; knows no database."""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

_GIB = 2**30
_MOST_POINTS = 20
_SLOWEST, _FASTEST = 0.001, 1e9  # tokens, or GiB, a second
_LAST_POSITION = 100_000_000
_TIERS = ("cpu", "disk", "remote")
_PREFILL = "expected tokens a second, like 12000, or by position in the prompt, like 0: 15000, 8192: 9000"
_LOADS = "expected GiB a second from cpu, disk or remote, like cpu: 20, disk: 3"


@dataclass(frozen=True)
class Prefill:
    """`points`: (position in the prompt, seconds that a token takes there), a straight line between two of them."""

    points: tuple[tuple[int, float], ...]

    def seconds(self, start: float, end: float) -> float:
        """Of computing the tokens from `start` up to `end`."""
        inside = [float(position) for position, _ in self.points if start < position < end]
        return sum((b - a) * (self._at(a) + self._at(b)) / 2 for a, b in pairwise([start, *inside, max(start, end)]))

    def _at(self, position: float) -> float:
        place = bisect_right([each for each, _ in self.points], position)
        if place in (0, len(self.points)):
            return self.points[max(place - 1, 0)][1]
        (left, low), (right, high) = self.points[place - 1], self.points[place]
        return low + (high - low) * (position - left) / (right - left)


@dataclass(frozen=True)
class TypedCosts:
    """`loads`: bytes a second by tier; what nobody typed is None, or not there."""

    prefill: Prefill | None = None
    loads: Mapping[str, float] = field(default_factory=dict)


NOTHING_TYPED = TypedCosts()


def typed_costs(prefill: str, loads: str) -> TypedCosts:
    """Of texts as they were typed, empty where nothing was. Raises ValueError, see `parse_prefill`, `parse_loads`."""
    return TypedCosts(parse_prefill(prefill) if prefill.strip() else None, parse_loads(loads) if loads.strip() else {})


def parse_prefill(text: str) -> Prefill:
    """ "12000" tokens a second, or "0: 15000, 8192: 9000". Raises ValueError with a sentence."""
    if ":" not in text:
        return Prefill(((0, 1 / _number(text, _PREFILL)),))
    points = [(_position(left), 1 / _number(right, _PREFILL)) for left, right in _pairs(text, _PREFILL)]
    if len(points) > _MOST_POINTS or any(before >= after for (before, _), (after, _) in pairwise(points)):
        raise ValueError(f"“{text.strip()[:60]}” has to be at most {_MOST_POINTS} positions that grow; {_PREFILL}.")
    return Prefill(tuple(points))


def parse_loads(text: str) -> dict[str, float]:
    """ "cpu: 20, disk: 3" GiB a second → bytes a second. Raises ValueError with a sentence."""
    found: dict[str, float] = {}
    for left, right in _pairs(text, _LOADS):
        tier = left.strip().lower()
        if tier not in _TIERS or tier in found:
            raise ValueError(f"“{tier[:40]}” is no tier, or there twice; {_LOADS}.")
        found[tier] = _number(right, _LOADS) * _GIB
    return found


def _pairs(text: str, expected: str) -> list[tuple[str, str]]:
    parts = [part.partition(":") for part in text.split(",")]
    if not all(colon for _, colon, _ in parts):
        raise ValueError(f"“{text.strip()[:60]}” is no list of pairs; {expected}.")
    return [(left, right) for left, _, right in parts]


def _position(text: str) -> int:
    digits = text.strip()
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 12 and int(digits) <= _LAST_POSITION):
        raise ValueError(f"“{digits[:40]}” is no position in a prompt; {_PREFILL}.")
    return int(digits)


def _number(text: str, expected: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not _SLOWEST <= number <= _FASTEST:  # also what is no number
        raise ValueError(f"“{text.strip()[:40]}” is no speed; {expected}.")
    return number
