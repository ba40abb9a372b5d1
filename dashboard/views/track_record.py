"""Predictions that were applied, beside what came of them, in words for a table."""

from collections.abc import Mapping
from typing import Any

from dashboard.charts import words
from dashboard.charts.palette import LOOKS
from dashboard.selectors.track_record import Compared, compared
from dashboard.sizes import format_size
from dashboard.zone import in_words


def track_record(now: float) -> list[dict[str, Any]]:
    """[{"at", "engine", "author", "sizes", "compared", "parts": [{"name", "predicted", "measured", "error"}]}]"""
    return [_row(each) for each in compared(now)]


def _row(each: Compared) -> dict[str, Any]:
    made = each.prediction
    predicted: Mapping[str, float] = made.predicted["hit"]
    return {
        "at": in_words(made.at),
        "engine": made.engine,
        "author": made.author.get_username() if made.author else "a deleted user",
        "sizes": [_resized(tier, made.old_sizes.get(tier), size) for tier, size in made.sizes.items()],
        "compared": _compared(each),
        "parts": [
            _share("Hit rate", sum(predicted.values()), None if each.hit is None else sum(each.hit.values())),
            *(
                _share(f"from {LOOKS[tier].label}", share, None if each.hit is None else each.hit.get(tier, 0.0))
                for tier, share in predicted.items()
            ),
            _time(made.predicted.get("ttft_seconds"), each.ttft_seconds),
        ],
    }


def _resized(tier: str, before: int | None, after: int) -> str:
    label = LOOKS[tier].label
    same = before is None or before == after
    return f"{label} {format_size(after)}" if same else f"{label} {format_size(before or 0)} → {format_size(after)}"


def _compared(each: Compared) -> str:
    wanted, so_far = (words.span(max(60, seconds // 60 * 60)) for seconds in (each.wanted_seconds, each.seconds))
    if not each.seconds:
        return "Nothing yet: the tiers were changed again at once." if each.is_cut else "Nothing yet."
    if each.is_cut:
        return f"{so_far}, until the tiers were changed again; it was made from {wanted}."
    if each.seconds + 60 < each.wanted_seconds:
        return f"The first {so_far} so far, while tiers fill; it was made from {wanted}."
    return f"{wanted}, as long as it was made from; tiers that grew had to fill first."


def _share(name: str, predicted: float, measured: float | None) -> dict[str, str]:
    error = "" if measured is None else f"{_signed(100 * (predicted - measured), 1)} points"
    return {"name": name, "predicted": words.percent(predicted), "measured": words.percent(measured), "error": error}


def _time(predicted: float | None, measured: float | None) -> dict[str, str]:
    error = ""
    if predicted is not None and measured:
        error = f"{_signed(100 * (predicted / measured - 1), 0)} %"
    told = {"predicted": words.duration(predicted), "measured": words.duration(measured)}
    return {"name": "Mean TTFT", **told, "error": error}


def _signed(number: float, digits: int) -> str:
    """ "+1.2", "−3", and "0.0" whichever side of it."""
    return f"{number:+z.{digits}f}".replace("-", "−") if round(number, digits) else f"{0:.{digits}f}"
