"""One card a tier: its verdict, and the numbers behind it as words. Draws nothing."""

from typing import Any

from dashboard.charts import words
from dashboard.charts.palette import LOOKS
from dashboard.charts.tier_verdicts import MIN_LOADS, prefill_rate, verdict_of
from dashboard.selectors.tier_costs import Costs, TierCost
from dashboard.sizes import format_size

NOT_TOLD = "not told"


def tier_cards(costs: Costs) -> list[dict[str, Any]]:
    return [_card(tier, costs) for tier in costs.tiers.values()]


def prefill_text(costs: Costs) -> str:
    """What computing costs, which every tier is compared with."""
    rate = prefill_rate(costs)
    if rate is None:
        return "What computing a prompt token costs was not measured in this period."
    measured = f"measured over {words.count(costs.prefill_tokens or 0)} tokens"
    return f"Computing 1,000 prompt tokens took {words.duration(1000 * rate)} ({measured})."


def _card(tier: TierCost, costs: Costs) -> dict[str, Any]:
    verdict = verdict_of(tier, costs)
    return {
        "tier": tier.tier,
        "label": LOOKS[tier.tier].label,
        "verdict": verdict.kind.value,
        "sentences": list(verdict.sentences),
        "facts": [{"name": name, "value": value, "more": more} for name, value, more in _facts(tier, costs)],
    }


def _facts(tier: TierCost, costs: Costs) -> list[tuple[str, str, str]]:
    """(name, value, more): the value is what counts, `more` what it is made of."""
    share = tier.hit_tokens / costs.prompt_tokens if costs.prompt_tokens else None
    saved = words.percent(share), f"{words.count(tier.hit_tokens)} hit tokens"
    facts = [("Prompt work saved", *saved), ("Prefill saved, about", *_saved(tier)), ("A hit costs", *_hit(tier))]
    if tier.tier != "gpu":
        facts += [
            ("Loaded", *_copied(tier.loaded_blocks, tier.loaded_bytes, tier.load_seconds)),
            ("Stored", *_copied(tier.stored_blocks, tier.stored_bytes, tier.store_seconds)),
            ("Not worth loading", _tokens(tier.skipped_tokens), "computed although the tier had them"),
            ("Failed copies", *_failed(tier)),
        ]
    return [
        *facts,
        ("Evicted", *_evicted(tier)),
        ("Computed again soon after", _tokens(tier.missed_tokens), "dropped here for lack of room shortly before"),
    ]


def _saved(tier: TierCost) -> tuple[str, str]:
    if tier.saved_seconds is None:
        return "–", "not measured"
    if tier.saved_seconds < 0:
        return f"−{words.duration(-tier.saved_seconds)}", "loads took longer than computing"
    return words.duration(tier.saved_seconds), "hit tokens × seconds a computed token − loads"


def _hit(tier: TierCost) -> tuple[str, str]:
    if tier.tier == "gpu":
        return "nothing", "attention reads it where it is"
    if tier.load_seconds_a_token is None:
        return ("–", NOT_TOLD) if tier.loaded_blocks is None else ("–", "no loads in this period")
    a_block = f"p50 {words.duration(tier.load_p50)}, p95 {words.duration(tier.load_p95)} a block"
    if (tier.loaded_blocks or 0) < MIN_LOADS:
        a_block = "too few for percentiles"
    return f"{words.duration(1000 * tier.load_seconds_a_token)} / 1,000 tokens", a_block


def _copied(num_blocks: int | None, num_bytes: int | None, seconds: float | None) -> tuple[str, str]:
    if num_blocks is None or num_bytes is None:
        return "–", NOT_TOLD
    if not num_blocks:
        return "none", ""
    how_fast = f" at {format_size(round(num_bytes / seconds))}/s" if seconds else ""
    return format_size(
        num_bytes
    ), f"{words.count(num_blocks)} {'block' if num_blocks == 1 else 'blocks'} in {words.duration(seconds)}{how_fast}"


def _failed(tier: TierCost) -> tuple[str, str]:
    if tier.num_errors is None:
        return "–", NOT_TOLD
    loads, stores = tier.num_errors.get("load", 0), tier.num_errors.get("store", 0)
    return (f"{loads + stores:,}", f"{loads:,} loads, {stores:,} stores") if loads + stores else ("none", "")


def _evicted(tier: TierCost) -> tuple[str, str]:
    if tier.num_evicted is None:
        return "–", NOT_TOLD
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in sorted(tier.num_evicted.items()) if count)
    total = sum(tier.num_evicted.values())
    return (words.counted(total, "block"), reasons) if total else ("none", "")


def _tokens(tokens: int | None) -> str:
    if tokens is None:
        return NOT_TOLD
    return f"{words.count(tokens)} tokens" if tokens else "none"
