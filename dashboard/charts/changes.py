"""Changes of tiers as rows of words: hit rate and time to first token before and after. Draws nothing."""

from collections.abc import Callable, Iterable
from typing import Any, Literal

from dashboard.charts import words
from dashboard.selectors.comparisons import Comparison, Obstacle


def change_rows(comparisons: Iterable[Comparison]) -> list[dict[str, Any]]:
    return [_row(comparison) for comparison in comparisons]


def _row(compared: Comparison) -> dict[str, Any]:
    before, after = compared.before, compared.after
    return {
        "at": compared.at,
        "text": compared.text,
        "window": _minutes(compared.seconds),
        "hit_rate": _pair(before, after, "hit_rate", words.percent, better="more"),
        "ttft": _pair(before, after, "ttft_p50", words.duration, better="less"),
        "note": _note(compared),
    }


Side = dict[str, Any] | None
Better = Literal["more", "less"]


def _pair(before: Side, after: Side, key: str, say: Callable[[float | None], str], *, better: Better) -> dict[str, str]:
    then, now = (side[key] if side else None for side in (before, after))
    return {"before": say(then), "after": say(now), "verdict": _verdict(then, now, better)}


def _verdict(then: float | None, now: float | None, better: Better) -> str:
    """Within 2 % of each other the two are called the same: traffic alone moves them that much."""
    if then is None or now is None or abs(now - then) <= 0.02 * max(then, now):
        return "neutral"
    return "better" if (now > then) == (better == "more") else "worse"


def _minutes(seconds: int | None) -> str:
    """ "5 min 20 s" """
    whole, rest = divmod(seconds or 0, 60)
    return f"{whole} min" + (f" {rest} s" if rest else "")


_APART = "what each did cannot be told apart."
_OBSTACLES = {
    Obstacle.TOO_NEW: "Less than a minute old: there is nothing to compare yet.",
    Obstacle.ANOTHER_BEFORE: f"Another change came less than a minute before it: {_APART}",
    Obstacle.ANOTHER_AFTER: f"Another change came less than a minute after it: {_APART}",
    Obstacle.OTHERS_AROUND: f"Other changes came less than a minute before and after it: {_APART}",
}


def _note(compared: Comparison) -> str:
    """Why there is nothing to compare; empty where there is."""
    if compared.obstacle:
        return _OBSTACLES[compared.obstacle]
    window, sides = _minutes(compared.seconds), {"before": compared.before, "after": compared.after}
    if unseen := " and ".join(name for name, side in sides.items() if side is None):
        return f"The {window} {unseen} it were not observed."
    if silent := " and ".join(name for name, side in sides.items() if side and side["prompt_tokens"] == 0):
        return f"Nothing was asked in the {window} {silent} it."
    return ""
