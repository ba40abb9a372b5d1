"""How long each resolution is kept. Reads only."""

from collections.abc import Mapping

from dashboard.models import Resolution, Retention


def retention() -> Retention:
    """The one row; its defaults where nobody has saved it yet."""
    return Retention.objects.order_by("pk").first() or Retention()


def kept_seconds(kept: Retention) -> Mapping[int, int]:
    """Resolution → how long its buckets are kept."""
    return {
        Resolution.TEN_SECONDS: kept.ten_seconds_hours * 3600,
        Resolution.MINUTE: kept.minutes_days * 86400,
        Resolution.HOUR: kept.hours_days * 86400,
        Resolution.DAY: kept.days_years * 366 * 86400,
    }


def oldest_starts(kept: Retention, now: float) -> Mapping[int, int]:
    """Resolution → the oldest start that is kept: on a whole day, so that a coarse bucket is covered wholly or not."""
    return {resolution: (int(now) - seconds) // 86400 * 86400 for resolution, seconds in kept_seconds(kept).items()}
