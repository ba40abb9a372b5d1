"""Sizes worth their price, in sentences with their reasons. Draws nothing, reads nothing."""

from typing import Any

from dashboard.advising import Choice, Front
from dashboard.charts import words
from dashboard.charts.palette import LOOKS
from dashboard.charts.what_if_words import dollars
from dashboard.sizes import format_size


def advice_rows(front: Front, *, budget: float | None, seconds: float | None) -> list[dict[str, Any]]:
    """[{"name", "sentence", "sizes": {tier: bytes}}]"""
    rows = [("Today", front.today, _today(front))]
    if bend := front.knee:
        rows.append(("Knee", bend, _knee(front, bend)))
    if budget is not None:
        rows.append(_limited(f"At most {dollars(budget)}", front.within_budget(budget), _fastest(front)))
    if seconds is not None:
        limit = f"{front.time_name} at most {words.duration(seconds)}"
        rows.append(_limited(limit, front.within_seconds(seconds), _cheapest(front)))
    rows += [("Cheapest", front.choices[0], "Nothing that was tried costs less.")]
    rows += [("Fastest", front.choices[-1], "Nothing that was tried is faster; what it costs more buys nothing else.")]
    return [_row(front, *row) for row in rows if row[1] is not None] + [
        {"name": name, "sentence": sentence, "sizes": {}} for name, choice, sentence in rows if choice is None
    ]


def _limited(name: str, choice: Choice | None, sentence: str) -> tuple[str, Any, str]:
    return name, choice, sentence if choice else "None of the sizes that were tried keeps this limit."


def _row(front: Front, name: str, choice: Choice, reason: str) -> dict[str, Any]:
    return {
        "name": name,
        "sentence": f"{in_words(front, choice)}. {reason}",
        "sizes": dict(zip(front.tiers, choice.sizes, strict=True)),
        "setup": choice.setup,
    }


def in_words(front: Front, choice: Choice) -> str:
    """ "gpu 96 MiB, cpu 1 GiB, disk off: $3.20 a month, mean TTFT 420 ms, 61.2 % hits" """
    sizes = zip(front.tiers, choice.sizes, strict=True)
    told = ", ".join(f"{LOOKS[tier].label} {format_size(size) if size else 'off'}" for tier, size in sizes)
    time = f"{front.time_name} {words.duration(choice.seconds)}"
    setup = f", with {choice.setup}" if choice.setup else ""
    return f"{told}{setup}: {dollars(choice.cost)} a month, {time}, {words.percent(sum(choice.served))} hits"


def _today(front: Front) -> str:
    cheaper = [c for c in front.choices if c.seconds <= front.today.seconds and c.cost < 0.99 * front.today.cost]
    if not cheaper:
        return "No sizes that were tried are as fast for at least 1 % less."
    best = min(cheaper, key=lambda choice: choice.cost)
    return f"As fast for {dollars(front.today.cost - best.cost)} less would be {in_words(front, best)}."


def _knee(front: Front, bend: Choice) -> str:
    first, last = front.choices[0], front.choices[-1]
    up_to = (first.seconds - bend.seconds) / (bend.cost - first.cost)
    beyond = (bend.seconds - last.seconds) / (last.cost - bend.cost)
    return (
        f"From the cheapest up to here each dollar saves {words.duration(up_to)}, beyond it {words.duration(beyond)}: "
        "here more money begins to buy less."
    )


def _fastest(front: Front) -> str:
    return f"The fastest of the {front.num_tried:,} sizes that were tried within this budget."


def _cheapest(front: Front) -> str:
    return f"The cheapest of the {front.num_tried:,} sizes that were tried within this time."
