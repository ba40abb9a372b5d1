"""Whether a tier pays for itself, said plainly with its numbers and what to do. Draws nothing, reads nothing.

Where there is too little to judge by, that is what is said.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from dashboard.charts import words
from dashboard.selectors.tier_costs import Costs, TierCost
from dashboard.sizes import format_size

MIN_LOADS = 20  # fewer tell what chance did
MIN_TIMED_TOKENS = 512
MIN_MISSED_TOKENS = 320
_HARDLY_READ = 50  # blocks stored for each that was read


class Kind(StrEnum):
    PAYS = "pays"
    COSTS = "costs"
    TOO_SMALL = "too small"
    FAILS = "fails"
    UNUSED = "unused"
    UNKNOWN = "not known"


@dataclass(frozen=True)
class Verdict:
    kind: Kind
    sentences: tuple[str, ...]


def verdict_of(tier: TierCost, costs: Costs) -> Verdict:
    kind, sentence = _judge(tier, costs)
    remarks = _remarks(tier, costs)
    if kind in (Kind.PAYS, Kind.UNKNOWN) and _is_too_small(tier):
        kind = Kind.TOO_SMALL
    return Verdict(kind, tuple(filter(None, [sentence, *remarks])))


def prefill_rate(costs: Costs) -> float | None:
    """Seconds a computed token, None where too few were timed."""
    return costs.prefill_seconds_a_token if (costs.prefill_tokens or 0) >= MIN_TIMED_TOKENS else None


def _judge(tier: TierCost, costs: Costs) -> tuple[Kind, str]:
    if tier.tier == "gpu":
        return _judge_gpu(tier, costs)
    if tier.loaded_blocks is None or tier.stored_blocks is None:
        return Kind.UNKNOWN, "No engine tells what this tier loads and stores."
    if not (tier.loaded_blocks or tier.stored_blocks or tier.hit_tokens):
        return _judge_unused(tier)
    if not tier.loaded_blocks and tier.stored_blocks >= MIN_LOADS:
        return _stores_without_loads(tier)
    if tier.loaded_blocks < MIN_LOADS:
        if _is_too_small(tier):  # that is what there is to say
            return Kind.TOO_SMALL, ""
        loads = f"{tier.loaded_blocks} {'load' if tier.loaded_blocks == 1 else 'loads'}"
        return (
            Kind.UNKNOWN,
            f"Fewer than {MIN_LOADS} loads in this period ({loads}): too few to judge. Choose a longer one.",
        )
    return _judge_loads(tier, costs)


def _judge_unused(tier: TierCost) -> tuple[Kind, str]:
    if any((tier.num_errors or {}).values()):
        return Kind.FAILS, "Whatever was to be stored here or read from here in this period failed."
    return Kind.UNUSED, "Nothing was stored here or read from here in this period."


def _judge_gpu(tier: TierCost, costs: Costs) -> tuple[Kind, str]:
    if not tier.hit_tokens:
        return Kind.UNUSED, "Nothing was read from here in this period."
    if prefill_rate(costs) is None or tier.saved_seconds is None:
        return Kind.UNKNOWN, _not_measured(costs)
    return Kind.PAYS, f"Pays: its hits saved about {words.duration(tier.saved_seconds)} of prefill."


def _judge_loads(tier: TierCost, costs: Costs) -> tuple[Kind, str]:
    load, compute = tier.load_seconds_a_token, prefill_rate(costs)
    if compute is None or load is None or tier.saved_seconds is None:
        return Kind.UNKNOWN, _not_measured(costs)
    if load > compute:
        return Kind.COSTS, (
            f"Loads are slower than computing: 1,000 tokens take {_thousand(load)} to load and {_thousand(compute)} to "
            f"compute. Its hits cost about {words.duration(-tier.saved_seconds)} more than they saved. "
            f"{_instead(tier)} a faster disk or network, or switch it off (size 0)."
        )
    return Kind.PAYS, (
        f"Pays: loading is {_times(compute / load)} as fast as computing; its hits saved about "
        f"{words.duration(tier.saved_seconds)} of prefill, loads subtracted."
    )


def _instead(tier: TierCost) -> str:
    """Where loads were skipped, that has been chosen already."""
    return "Give it" if tier.skipped_tokens else "Load from it only when that is cheaper (in the admin), give it"


def _stores_without_loads(tier: TierCost) -> tuple[Kind, str]:
    """While nothing has left to make room, all of it may still be read."""
    size = format_size(tier.stored_bytes or 0)
    were = "was" if tier.stored_blocks == 1 else "were"
    blocks = words.counted(tier.stored_blocks or 0, "block")
    copied = f"{blocks} ({size}) {were} copied here in {words.duration(tier.store_seconds)}"
    if not (tier.num_evicted or {}).get("capacity"):
        return Kind.UNKNOWN, f"{copied} and none was read yet; none had to make room yet either: too early to judge."
    if _is_too_small(tier):  # no advice to switch it off beside one to double it
        return Kind.TOO_SMALL, f"Stores without loads: {copied} and left before they were read again."
    return Kind.COSTS, (
        f"Stores without loads: {copied} and none was read again. If a longer period says the same, give its "
        "room to another tier or switch it off (size 0)."
    )


def _remarks(tier: TierCost, costs: Costs) -> Iterator[str]:
    missed = tier.missed_tokens or 0
    if missed >= MIN_MISSED_TOKENS and 10 * missed >= tier.hit_tokens:
        yield _missed(tier, missed, prefill_rate(costs))
    if tier.loaded_blocks and tier.stored_blocks and tier.stored_blocks > _HARDLY_READ * tier.loaded_blocks:
        were = "was" if tier.loaded_blocks == 1 else "were"
        yield (
            f"Of {tier.stored_blocks:,} stored blocks {tier.loaded_blocks:,} {were} read: in mode “write selective” "
            "only what is used again would be stored."
        )
    if tier.skipped_tokens:
        yield (
            f"{words.count(tier.skipped_tokens)} tokens that it had were computed all the same, because that was "
            "cheaper than loading them."
        )
    if tier.num_errors and (failed := sum(tier.num_errors.values())):
        loads, stores = tier.num_errors.get("load", 0), tier.num_errors.get("store", 0)
        yield f"{failed:,} copies failed ({loads:,} loads, {stores:,} stores): the engine's log says why."
    if tier.num_given_up:
        times = "once" if tier.num_given_up == 1 else f"{tier.num_given_up:,} times"
        yield f"Its server was given up {times}: while it is, nothing is read or stored. “Tiers now” says how it is."
    if tier.tier != "gpu" and tier.loaded_blocks is not None and tier.elsewhere_hit_tokens:
        yield (
            f"{words.count(tier.elsewhere_hit_tokens)} of its hit tokens are of engines that do not tell what they "
            "load and store: this is of the others."
        )
    if tier.is_partly_saved:
        yield "Engines that do not tell how long computing takes are left out of the seconds."


def _missed(tier: TierCost, missed: int, compute: float | None) -> str:
    served = f", {_ratio(missed / tier.hit_tokens)} what it served" if tier.hit_tokens else ", and it served none"
    worth = "" if compute is None else f": about {words.duration(missed * compute)} of prefill"
    return (
        f"{words.count(missed)} tokens were computed again soon after their blocks had been dropped "
        f"here{served}{worth}. About twice its size would have kept them."
    )


def _is_too_small(tier: TierCost) -> bool:
    return (tier.missed_tokens or 0) >= max(MIN_MISSED_TOKENS, tier.hit_tokens)


def _not_measured(costs: Costs) -> str:
    if costs.prefill_tokens is None:
        return "No engine tells how long computing takes, so that what a hit is worth is not known."
    return (
        f"Only {costs.prefill_tokens:,} computed tokens were timed in this period (in steps of 64 or more): too few to "
        "say what computing costs. Choose a longer one."
    )


def _thousand(seconds_a_token: float) -> str:
    return words.duration(1000 * seconds_a_token)


def _times(ratio: float) -> str:
    return f"{ratio:,.0f} times" if ratio >= 10 else f"{ratio:.1f} times"


def _ratio(ratio: float) -> str:
    return (
        f"{ratio:,.0f} times" if ratio >= 10 else (f"{ratio:.1f} times" if ratio >= 1 else words.percent(ratio) + " of")
    )
