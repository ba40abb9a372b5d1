"""Tokens that moved between tiers in a period: where they came from and where they went. Knows no database."""

from dataclasses import dataclass

from dashboard.selectors.tier_costs import Costs

_ENDS = ("freed", "dropped")


@dataclass(frozen=True)
class Flow:
    """`origin` is a tier, "computed" or "found"; `to` a tier, "freed" (another tier has the block) or "dropped"."""

    origin: str
    to: str
    tokens: int


def flows_of(costs: Costs) -> list[Flow] | None:
    """What moved, the most first. None where no engine tells it.

    What went from tier to tier is told by both sides: counted where it came to, so that a copy that stayed behind
    counts, too.
    """
    tiers = costs.tiers.values()
    if all(tier.entered_tokens is None for tier in tiers):
        return None
    came = [Flow(origin, tier.tier, n) for tier in tiers for origin, n in (tier.entered_tokens or {}).items()]
    went = [Flow(tier.tier, end, (tier.left_tokens or {}).get(end, 0)) for tier in tiers for end in _ENDS]
    moved = [flow for flow in (*came, *went) if flow.tokens]
    return sorted(moved, key=lambda flow: (-flow.tokens, flow.origin, flow.to))
