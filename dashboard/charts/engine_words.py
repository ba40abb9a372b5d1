"""One engine in words: what it cannot tell, and its tiers as rows of a table. Knows no database and draws nothing."""

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from dashboard.charts.palette import LOOKS
from dashboard.models import CacheTier, Series
from dashboard.selectors.sizes_now import SizeRow
from dashboard.sizes import format_size
from dashboard.tier_modes import modes_in_words

Metric = Series.Metric
NOT_TOLD = "not told"
_UNATTRIBUTED = CacheTier.UNATTRIBUTED
# What follows where none of these metrics was ever told.
_LACKING = (
    ((Metric.PROMPT_TOKENS,), "Prompt tokens: what was hit is drawn, and there is no hit rate."),
    ((Metric.HIT_TOKENS,), "Hit tokens: there is no split by tier and no hit rate."),
    ((Metric.COMPUTED_TOKENS,), "Computed tokens: what no tier served is not known."),
    ((Metric.REQUESTS,), "Finished requests."),
    ((Metric.TTFT,), "Times to first token."),
    ((Metric.CAPACITY_BYTES, Metric.CAPACITY_TOKENS), "How large its tiers are."),
    ((Metric.USED_BYTES, Metric.RESIDENT_TOKENS), "How full its tiers are."),
    ((Metric.MISSED_TOKENS,), "What its tiers drop and compute again soon after: no alert can say that one thrashes."),
    ((Metric.LOAD_TIMES,), "How long loads take: whether a slower tier pays is not known."),
)


def cannot_tell(told: Collection[tuple[str, str]], *, is_own: bool) -> list[str]:
    """`told`: (metric, tier) of every series. What was not told so far is not told."""
    metrics = {metric for metric, _ in told}
    sentences = [text for lacking, text in _LACKING if metrics.isdisjoint(lacking)]
    sentences += _untold_tiers(told)
    if not is_own:
        sentences.append("How many requests run and wait now: that is read of our own engines only.")
    return sentences


def _untold_tiers(told: Collection[tuple[str, str]]) -> Iterator[str]:
    tiers = {metric: {tier for named, tier in told if named == metric} for metric in (Metric.HIT_TOKENS, Metric.TTFT)}
    if tiers[Metric.HIT_TOKENS] == {_UNATTRIBUTED}:
        yield "In which tier its hits lay: all are unattributed."
    elif _UNATTRIBUTED in tiers[Metric.HIT_TOKENS]:
        yield "In which tier some hits lay, if any: such hits are unattributed."
    if _UNATTRIBUTED in tiers[Metric.TTFT]:
        yield "For which tier a request waited: its times to first token are those of all requests together."


def size_cells(rows: Iterable[SizeRow]) -> list[dict[str, Any]]:
    """[{"tier", "label", "size", "used", "resident", "modes", "note", "used_percent"}], as the rows come."""
    return [_cells(row) for row in rows]


def _cells(row: SizeRow) -> dict[str, Any]:
    return {
        "tier": row.tier,
        "label": LOOKS[row.tier].label,
        "size": _size(row.applied_bytes, row.capacity_tokens),
        "used": NOT_TOLD if row.used_bytes is None else format_size(row.used_bytes),
        "used_percent": _percent(row),
        "resident": NOT_TOLD if row.resident_tokens is None else f"{row.resident_tokens:,} tokens",
        "modes": _modes(row),
        "note": _note(row),
    }


def _size(num_bytes: int | None, tokens: int | None) -> str:
    told = [
        *([format_size(num_bytes)] if num_bytes is not None else []),
        *([f"{tokens:,} tokens"] if tokens is not None else []),
    ]
    return ", ".join(told) or NOT_TOLD


def _percent(row: SizeRow) -> float | None:
    """How full it is, by bytes or else by tokens; None where either is not told."""
    pairs = ((row.used_bytes, row.applied_bytes), (row.resident_tokens, row.capacity_tokens))
    known = (100 * used / size for used, size in pairs if used is not None and size)
    return next((min(100.0, round(share, 2)) for share in known), None)


def _modes(row: SizeRow) -> str:
    """Of our own engines: who leaves first, and when blocks are stored."""
    if not row.policy:
        return NOT_TOLD
    modes = {"policy": row.policy, "write_mode": row.write_mode, "store_after_hits": row.store_after_hits}
    return modes_in_words(row.tier, {**modes, "load": row.load})


def _note(row: SizeRow) -> str:
    """Why it does not have the size that was asked for."""
    if row.desired_bytes is None or row.desired_bytes == row.applied_bytes:
        return row.reason
    return " ".join(filter(None, [f"Asked for: {format_size(row.desired_bytes)}.", row.reason]))
