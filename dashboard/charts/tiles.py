"""Totals of a period as tiles, each with the change against the period before, in words. Draws nothing.

Whether a change is good is said only where it is known: a higher hit rate and a shorter time to first token are better;
more or fewer tokens are neither.
"""

from typing import Any

from dashboard.charts import words
from dashboard.charts.differences import points, relative
from dashboard.charts.palette import COMPUTED, label_of, tiers_in, with_the_rest
from dashboard.models import CacheTier
from dashboard.selectors.comparisons import are_alike, share_of_looks

Totals = dict[str, Any]

HELP = {
    "prompt_tokens": "All prompt tokens of the requests that were admitted in this period. "
    "Prompt tokens = hit tokens of all tiers + computed tokens.",
    "hit_rate": "Share of the prompt tokens whose keys and values were reused from a tier instead of computed. "
    "Only full blocks are reused and the last prompt token is always computed, "
    "so that even a repeated prompt stays below 100 %.",
    "computed_tokens": "Prompt tokens that were prefilled because no tier held them: first-time prompts, "
    "the last token of each prompt, the rest of a block that is not full, and what had been evicted.",
    "requests": "Requests that ended in this period, whatever the reason, of the engines that tell them.",
    "ttft_p50": "Half of the requests got their first token within this time, from arrival, waiting included. "
    "Of the engines that tell it.",
    "ttft_p95": "19 of 20 requests got their first token within this time, from arrival, waiting included. "
    "Of the engines that tell it.",
}


def tiles(totals: Totals, period_seconds: int) -> list[dict[str, Any]]:
    """Args: `totals` as the selector returns it, with the period before under "previous" (None: not observed)."""
    before = totals.get("previous")
    if comparison_note(totals, period_seconds):
        before = None
    against = f"than in the {_before(period_seconds)}"
    return [
        _counted("prompt_tokens", "Prompt tokens", totals, before, against),
        _rate(totals, before, against),
        _counted("computed_tokens", "Computed tokens", totals, before, against),
        _counted("requests", "Requests", totals, before, against),
        _timed("ttft_p50", "TTFT p50", totals, before, against),
        _timed("ttft_p95", "TTFT p95", totals, before, against),
    ]


def comparison_note(totals: Totals, period_seconds: int) -> str:
    """Why no tile has a change, once for all of them; empty where they have, or where there is nothing now either."""
    before = totals.get("previous")
    if totals["prompt_tokens"] == 0 and not totals["requests"]:
        return ""
    if before is None:
        was = "was" if _before(period_seconds).count(" ") == 1 else "were"
        return f"The {_before(period_seconds)} {was} not observed: there is nothing to compare with."
    if before["prompt_tokens"] == 0 and not before["requests"]:
        return f"Nothing was asked in the {_before(period_seconds)}: there is nothing to compare with."
    looks = totals["num_looks"], before["num_looks"]
    if not are_alike(*looks):
        where = "in" if looks[1] < looks[0] else "as in"
        share = words.percent(share_of_looks(*looks))
        return f"Only {share} as much was observed {where} the {_before(period_seconds)}: the two are not compared."
    return ""


def _before(period_seconds: int) -> str:
    """ "hour before", "15 minutes before" """
    return f"{words.span(period_seconds).removeprefix('1 ')} before"


def origins(totals: Totals) -> list[dict[str, Any]]:
    """Where the period's prompt tokens came from, fastest tier first, computed and what is not told last; shares of all
    prompt tokens.
    """
    prompt, hits = totals["prompt_tokens"], totals["hit_tokens"]
    counted = [(tier, hits[tier]) for tier in tiers_in(hits) if hits[tier] or tier != CacheTier.UNATTRIBUTED]
    return [
        {
            "origin": origin,
            "label": label_of(origin),
            "tokens": tokens,
            "tokens_text": words.count(tokens),
            "share": tokens / prompt if prompt else None,
            "share_text": words.percent(tokens / prompt if prompt else None),
        }
        for origin, tokens in with_the_rest([*counted, (COMPUTED, totals["computed_tokens"])], prompt or 0)
    ]


def hit_rate(totals: Totals) -> float | None:
    """Hit tokens of all tiers over prompt tokens; None where nothing was asked, or no engine tells what it hit."""
    rate: float | None = totals["hit_rate"]
    return rate


def _counted(key: str, label: str, totals: Totals, before: Totals | None, against: str) -> dict[str, Any]:
    change = relative(totals[key], before[key] if before else None, against, "")
    if totals[key] is None:
        return _tile(key, label, "–", change, exact="not told by these engines")
    return _tile(key, label, words.count(totals[key]), change, exact=f"{totals[key]:,}")


def _timed(key: str, label: str, totals: Totals, before: Totals | None, against: str) -> dict[str, Any]:
    change = relative(totals[key], before[key] if before else None, against, "less", words_for=("slower", "faster"))
    return _tile(key, label, words.duration(totals[key]), change)


def _rate(totals: Totals, before: Totals | None, against: str) -> dict[str, Any]:
    now, then = hit_rate(totals), hit_rate(before) if before else None
    return _tile("hit_rate", "Hit rate", words.percent(now), points(now, then, against))


def _tile(key: str, label: str, value: str, change: dict[str, str], exact: str = "") -> dict[str, Any]:
    return {"key": key, "label": label, "value": value, "exact": exact or value, "change": change, "help": HELP[key]}
