"""Values of a line, each checked, with a sentence that says what was expected. Knows nothing about forms."""

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

Told = Mapping[str, Any]
_MAX_COUNT = 1 << 40
# By type, not by instance: True is no number, and a set of types takes a quarter of the time for long lists.
_NAMES = {int, str}
# The year 5138 in seconds; what is more is in another unit.
_MAX_SECONDS = 1e11
_MAX_NUMBER = 1e21
# Later than this, seconds are Unix time (2001); earlier, they count from a beginning that the trace does not tell.
UNIX_FROM = 1e9


class WrongValueError(ValueError):
    """One sentence, without the place."""


def shown(value: object) -> str:
    """The beginning of how it is written, for a sentence."""
    try:
        return f"{value!r:.40}"
    except RecursionError:
        return f"a {type(value).__name__} in many others"


def names(told: Told, field: str) -> Sequence[Hashable]:
    """Of blocks: numbers or texts; none where the field is not there."""
    found = told.get(field, ())
    if not isinstance(found, list | tuple) or not {*map(type, found)} <= _NAMES:
        raise WrongValueError(f"“{field}” has to be a list of numbers or texts.")
    return found


def number(told: Told, field: str) -> int:
    found = told.get(field)
    if not _is_count(found):
        raise WrongValueError(f"“{field}” is {shown(found)}; expected a count.")
    assert isinstance(found, int)
    return found


def optional_number(told: Told, field: str, default: int = 0) -> int:
    return number(told, field) if told.get(field) is not None else default


def counts(told: Told, field: str, num_blocks: int, default: int) -> Sequence[int]:
    """For each of the blocks: a list, or one number for all."""
    found = told.get(field, default)
    if _is_count(found):
        return [found] * num_blocks
    if not isinstance(found, list) or len(found) != num_blocks or not _are_counts(found):
        raise WrongValueError(f"“{field}” has to be a list with a count for each of the {num_blocks:,} blocks.")
    return found


def text(told: Told, field: str) -> str:
    """Empty where it is not there."""
    found = told.get(field, "")
    if not isinstance(found, str) or len(found) > 200:
        raise WrongValueError(f"“{field}” is {shown(found)}; expected a text of at most 200 letters.")
    return found


def seconds(told: Told, field: str, per_second: float) -> float:
    """`per_second` is the unit; 0 where it is known from the number's size: Unix time in s, ms, µs or ns."""
    found = told.get(field)
    if not isinstance(found, int | float) or isinstance(found, bool):
        raise WrongValueError(f"“{field}” is {shown(found)}; expected a time as a number.")
    at = float(found) / (per_second or _unit_of(abs(found))) if abs(found) < _MAX_NUMBER else math.inf
    if not math.isfinite(at) or abs(at) >= _MAX_SECONDS:
        raise WrongValueError(f"“{field}” is {shown(found)}; expected a time up to the year 5138.")
    return at


def _unit_of(found: float) -> float:
    return next((unit for unit in (1e9, 1e6, 1e3) if found >= UNIX_FROM * unit), 1.0)


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < _MAX_COUNT


def _are_counts(values: list[object]) -> bool:
    return {*map(type, values)} <= {int} and all(map(_is_count, (min(values, default=0), max(values, default=0))))  # type: ignore[type-var]  # all are int by then
