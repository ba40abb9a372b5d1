"""A stretch of time to draw, cut into equal steps, and the stored resolution it is read from. Knows no metric.

Starts are multiples of the step, so that the same bucket is the same on every reload.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from dashboard.models import Resolution
from dashboard.selectors.kept import oldest_starts, retention

MAX_STEPS = 180  # a bar every 3 px: a chart is half a wide screen
MAX_SECONDS = 20 * 366 * 86400
_DAY = 86400
_STEPS = (
    10,
    20,
    30,
    60,
    120,
    300,
    600,
    900,
    1800,
    3600,
    7200,
    10800,
    21600,
    43200,
    _DAY,
    2 * _DAY,
    7 * _DAY,
    30 * _DAY,
    60 * _DAY,
)


class PeriodError(ValueError):
    """The asked period cannot be shown; the message is one sentence for a person."""


@dataclass(frozen=True)
class Period:
    """Unix seconds, `end` exclusive; both are multiples of `step_seconds`."""

    start: int
    end: int
    step_seconds: int

    def __post_init__(self) -> None:
        if self.start >= self.end:
            raise PeriodError("The period ends before it starts.")
        if self.step_seconds % 10 or self.start % self.step_seconds or self.end % self.step_seconds:
            raise PeriodError(f"A period starts and ends at multiples of its step, {self.step_seconds} s.")

    @property
    def resolution(self) -> int:
        """The coarsest stored resolution that the step is made of."""
        return max(each for each in Resolution.values if self.step_seconds % each == 0)

    @property
    def starts(self) -> list[int]:
        return list(range(self.start, self.end, self.step_seconds))

    def in_steps_of(self, seconds: int) -> "Period":
        """The whole steps of so many seconds that hold it."""
        return Period(self.start // seconds * seconds, -(-self.end // seconds) * seconds, seconds)

    def before(self) -> "Period":
        """The period of the same length that ends where this one starts."""
        return Period(self.start - (self.end - self.start), self.start, self.step_seconds)


def last(seconds: int, *, now: float) -> Period:
    """The newest `seconds` up to and with the bucket that is still filling."""
    return between(now - seconds, now, now=now)


def between(start: float, end: float, *, now: float) -> Period:
    """The steps that fit best between two moments, from data that is still kept. Raises PeriodError with a sentence."""
    if not 0 <= start < end:
        raise PeriodError("The period ends before it starts: “to” has to be later than “from”.")
    if end - start > MAX_SECONDS:
        raise PeriodError("The period is longer than 20 years; choose a shorter one.")
    return fit(start, end, oldest_starts(retention(), now))


def fit(start: float, end: float, oldest: Mapping[int, int]) -> Period:
    """The finest step with at most MAX_STEPS of them, whose resolution (see `Period`) still has the first bucket."""
    for step in _STEPS:
        period = _aligned(start, end, step)
        is_fine_enough = (end - start) / step <= MAX_STEPS
        if step == _STEPS[-1] or (is_fine_enough and period.start >= oldest.get(period.resolution, 0)):
            return period
    raise AssertionError("the last step always fits")


def twins(start: float, end: float, shift: int | None, *, now: float) -> tuple[Period, Period]:
    """The period between two moments and one as long `shift` seconds earlier, None for the one right before it.

    Both have the same steps, the finest that are still kept of both; the shift is rounded to whole steps. Raises
    PeriodError with a sentence.
    """
    between(start, end, now=now)
    oldest = oldest_starts(retention(), now)
    for step in _STEPS:
        first = _aligned(start, end, step)
        moved = first.end - first.start if shift is None else round(shift / step) * step
        if first.start < moved:
            raise PeriodError("The other period would begin before 1970.")
        second = Period(first.start - moved, first.end - moved, step)
        is_kept = min(first.start, second.start) >= oldest.get(first.resolution, 0)
        if step == _STEPS[-1] or ((end - start) / step <= MAX_STEPS and is_kept):
            return first, second
    raise AssertionError("the last step always fits")


def _aligned(start: float, end: float, step: int) -> Period:
    """Whole steps: the end is rounded up (the newest bucket is shown while it fills), the length is kept."""
    aligned_end = ceil(end / step) * step
    num_steps = max(1, round((end - start) / step))
    return Period(aligned_end - num_steps * step, aligned_end, step)
