"""What was measured and what is predicted, side by side in words. Draws nothing, reads nothing."""

from typing import Any

from dashboard.charts import words
from dashboard.charts.palette import LOOKS
from dashboard.charts.what_if_words import dollars
from dashboard.predicting import Outcome, Predictor


def outcome_rows(measured: Outcome, at_today: Outcome, chosen: Outcome, *, is_today: bool) -> list[dict[str, Any]]:
    """[{"name", "measured", "today", "chosen", "change"}]: measured, predicted for today's sizes, and for the chosen.

    `change` is chosen against predicted today: both by the same method, so that its error is in neither.
    """
    rows = [
        _row("Hit rate", *(words.percent(each.hit_rate) for each in (measured, at_today, chosen))),
        *(
            _row(
                f"from {LOOKS[tier].label}",
                *(words.percent(each.hit.get(tier)) for each in (measured, at_today, chosen)),
            )
            for tier in chosen.hit
        ),
        _row("Mean TTFT", *(words.duration(each.ttft_seconds) for each in (measured, at_today, chosen))),
        _row("TTFT p95, about", *(words.duration(each.ttft_p95_seconds) for each in (measured, at_today, chosen))),
        _row("Prefill saved", *(words.duration(each.saved_seconds) for each in (measured, at_today, chosen))),
        *_bills(measured, at_today, chosen),
    ]
    changes = ["" if is_today else change for change in _changes(at_today, chosen)]
    return [row | {"change": change} for row, change in zip(rows, [*changes, *[""] * len(rows)], strict=False)]


def _row(name: str, measured: str, today: str, chosen: str) -> dict[str, Any]:
    return {"name": name, "measured": measured, "today": today, "chosen": chosen}


def _bills(measured: Outcome, at_today: Outcome, chosen: Outcome) -> list[dict[str, Any]]:
    if chosen.bill is None:
        return []
    parts = [
        _row(f"for {_paid(part)}", *(dollars(each.dollars.get(part)) for each in (measured, at_today, chosen)))
        for part in chosen.dollars
    ]
    return [
        _row("A month costs", *(dollars(each.bill) for each in (measured, at_today, chosen))),
        _row("1 million prompt tokens", *(dollars(each.million_dollars) for each in (measured, at_today, chosen))),
        *parts,
    ]


def _paid(part: str) -> str:
    return "computing prompts" if part == "prefill" else f"{LOOKS[part].label} memory"


def _changes(before: Outcome, after: Outcome) -> list[str]:
    """One for each row, in their order."""
    points = [_points(before.hit_rate, after.hit_rate)]
    points += [_points(before.hit.get(tier, 0.0), share) for tier, share in after.hit.items()]
    times = [
        (before.ttft_seconds, after.ttft_seconds),
        (before.ttft_p95_seconds, after.ttft_p95_seconds),
        (before.saved_seconds, after.saved_seconds),
    ]
    totals = [(before.bill, after.bill), (before.million_dollars, after.million_dollars)]
    bills = [*totals, *((before.dollars.get(p), d) for p, d in after.dollars.items())]
    return [
        *points,
        *(_signed(old, new, words.duration) for old, new in times),
        *(_signed(old, new, dollars) for old, new in bills),
    ]


def _points(before: float, after: float) -> str:
    change = 100 * (after - before)
    return f"{change:+.1f} points".replace("-", "−") if abs(change) >= 0.05 else "the same"


def _signed(before: float | None, after: float | None, shown: Any) -> str:
    if before is None or after is None:
        return ""
    sign = "+" if after > before else "−"
    return "the same" if shown(before) == shown(after) else f"{sign}{shown(abs(after - before))}"


def prices_text(predictor: Predictor) -> str:
    """What to do where prices are missing; "" where all are there."""
    typed = predictor.prices
    if typed.is_empty:
        return "No prices are typed in: an admin can do so under Prices, and the page then shows what each month costs."
    missing = [f"a GiB of {LOOKS[tier.tier].label}" for tier in predictor.tiers if tier.tier not in typed.gib_month]
    missing += [] if typed.gpu_hour is not None else ["a GPU hour"]
    if not missing:
        return ""
    return f"Not in the bill, since no price is typed in under Prices: {', '.join(missing)}."
