"""A period in steps that somebody else chose, instead of those that suit a chart. Knows no metric."""

from collections.abc import Mapping
from datetime import UTC, datetime

from dashboard.selectors.kept import oldest_starts, retention
from dashboard.selectors.period import Period, PeriodError

MAX_STEPS = 10_000


def stepped(start: int, end: int, step: int, *, now: float) -> Period:
    """The whole steps that hold the stretch. Raises PeriodError where there are too many, or they are not kept."""
    if step % 10:
        raise PeriodError(
            f"A step of {step} s cannot be read: buckets are of 10 s, so that it has to be a multiple of 10."
        )
    period = Period(start // step * step, -(-end // step) * step, step)
    num_steps = (period.end - period.start) // step
    if num_steps > MAX_STEPS:
        raise PeriodError(
            f"{num_steps:,} steps are more than {MAX_STEPS:,}; ask for a longer step or a shorter period."
        )
    oldest = oldest_starts(retention(), now)
    if period.start < oldest[period.resolution]:
        raise PeriodError(_not_kept(period, oldest))
    return period


def _not_kept(period: Period, oldest: Mapping[int, int]) -> str:
    since = datetime.fromtimestamp(oldest[period.resolution], UTC)
    coarser = [each for each, start in sorted(oldest.items()) if start <= period.start]
    told = f"ask for a step that is a multiple of {coarser[0]} s" if coarser else "nothing as old is kept"
    return f"Buckets of {period.resolution} s are kept since {since:%Y-%m-%dT%H:%MZ} only; {told}."
