"""What a tier's card says: plainly whether it pays, with its numbers, and nothing where too little is known."""

from dataclasses import replace
from typing import Any

import pytest

from dashboard.charts.tier_cards import prefill_text, tier_cards
from dashboard.charts.tier_verdicts import Kind, Verdict, verdict_of
from dashboard.selectors.tier_costs import Costs, TierCost

DISK = TierCost(
    "disk",
    hit_tokens=16_000,
    loaded_blocks=1_000,
    loaded_bytes=1_000 << 20,
    loaded_tokens=16_000,
    load_seconds=4.0,
    load_times={0.0025: 200, 0.005: 800},
    stored_blocks=2_000,
    stored_bytes=2_000 << 20,
    store_seconds=10.0,
    num_errors={"load": 0, "store": 0},
    num_evicted={"capacity": 12, "resize": 0},
    skipped_tokens=0,
    missed_tokens=0,
    saved_seconds=28.0,
)


def costs(*tiers: TierCost, prefill_tokens: int | None = 10_000, prefill_seconds: float | None = 20.0) -> Costs:
    return Costs(40_000, prefill_tokens, prefill_seconds, {tier.tier: tier for tier in tiers})


def judged(tier: TierCost = DISK, **changes: Any) -> Verdict:
    computing = {name: changes.pop(name) for name in ("prefill_tokens", "prefill_seconds") if name in changes}
    tier = replace(tier, **changes)
    return verdict_of(tier, costs(tier, **computing))


def test_a_tier_that_saves_more_than_it_takes_pays_and_says_how_much() -> None:
    verdict = judged()
    assert verdict.kind is Kind.PAYS
    assert verdict.sentences == (
        "Pays: loading is 8.0 times as fast as computing; its hits saved about 28 s of prefill, loads subtracted.",
    )


def test_stores_without_loads_do_not_pay() -> None:
    verdict = judged(loaded_blocks=0, loaded_tokens=0, load_seconds=0.0, hit_tokens=0, saved_seconds=None)
    assert verdict.kind is Kind.COSTS
    assert "2,000 blocks (1.95 GiB) were copied here in 10 s and none was read again." in verdict.sentences[0]
    assert "switch it off (size 0)" in verdict.sentences[0]


def test_hits_of_engines_that_do_not_tell_their_loads_are_said_beside_the_verdict_of_the_others() -> None:
    verdict = judged(loaded_blocks=0, loaded_tokens=0, load_seconds=0.0, elsewhere_hit_tokens=2_050, saved_seconds=None)
    assert verdict.kind is Kind.COSTS
    assert verdict.sentences[1].startswith("2,050 of its hit tokens are of engines that do not tell what they load")


def test_a_tier_that_has_let_nothing_go_yet_is_not_condemned_for_reads_that_may_come() -> None:
    verdict = judged(
        loaded_blocks=0,
        loaded_tokens=0,
        load_seconds=0.0,
        hit_tokens=0,
        saved_seconds=None,
        num_evicted={"capacity": 0},
    )
    assert verdict.kind is Kind.UNKNOWN
    assert verdict.sentences[0].endswith("none had to make room yet either: too early to judge.")


def test_loads_that_are_slower_than_computing_do_not_pay() -> None:
    verdict = judged(load_seconds=48.0, saved_seconds=-16.0)
    assert verdict.kind is Kind.COSTS
    assert "1,000 tokens take 3 s to load and 2 s to compute" in verdict.sentences[0]
    assert "cost about 16 s more than they saved" in verdict.sentences[0]
    assert "Load from it only when that is cheaper (in the admin), give it a faster disk" in verdict.sentences[0]


def test_nobody_is_advised_to_choose_what_is_chosen_already() -> None:
    verdict = judged(load_seconds=48.0, saved_seconds=-16.0, skipped_tokens=7_296)
    assert verdict.sentences[0].endswith(
        "than they saved. Give it a faster disk or network, or switch it off (size 0)."
    )
    assert verdict.sentences[1].startswith("7,296 tokens that it had were computed all the same")


@pytest.mark.parametrize("num_loads", [1, 19])
def test_a_few_loads_say_nothing(num_loads: int) -> None:
    verdict = judged(loaded_blocks=num_loads)
    assert verdict.kind is Kind.UNKNOWN
    assert f"Fewer than 20 loads in this period ({num_loads} load" in verdict.sentences[0]


def test_what_computing_costs_has_to_be_measured_before_anything_is_compared_with_it() -> None:
    few, none = judged(prefill_tokens=511), judged(prefill_tokens=None, prefill_seconds=None, saved_seconds=None)
    assert {few.kind, none.kind} == {Kind.UNKNOWN}
    assert "Only 511 computed tokens were timed" in few.sentences[0]
    assert "No engine tells how long computing takes" in none.sentences[0]


def test_blocks_that_were_dropped_and_computed_again_soon_after_tell_that_the_tier_is_too_small() -> None:
    verdict = judged(missed_tokens=24_000)
    assert verdict.kind is Kind.TOO_SMALL
    assert "24,000 tokens were computed again soon after" in verdict.sentences[1]
    assert "1.5 times what it served: about 48 s of prefill. About twice its size" in verdict.sentences[1]
    some = judged(missed_tokens=2_000)
    assert some.kind is Kind.PAYS
    assert "12.5 % of what it served" in some.sentences[1]
    assert judged(missed_tokens=300).sentences == judged().sentences


def test_nobody_is_told_to_switch_off_what_twice_its_size_would_have_kept() -> None:
    verdict = judged(
        loaded_blocks=0, loaded_tokens=0, load_seconds=0.0, hit_tokens=0, saved_seconds=None, missed_tokens=9_600
    )
    assert verdict.kind is Kind.TOO_SMALL
    assert verdict.sentences[0].endswith("were copied here in 10 s and left before they were read again.")
    assert verdict.sentences[1].endswith("about 19.2 s of prefill. About twice its size would have kept them.")
    assert "switch it off" not in " ".join(verdict.sentences)


def test_few_loads_of_a_tier_that_is_too_small_are_not_said_to_be_too_few_to_judge() -> None:
    verdict = judged(loaded_blocks=1, hit_tokens=16, missed_tokens=9_600)
    assert verdict.kind is Kind.TOO_SMALL
    assert verdict.sentences[0].startswith("9,600 tokens were computed again soon after")


def test_a_tier_of_which_every_copy_failed_fails_and_is_not_called_unused() -> None:
    verdict = judged(TierCost("remote", loaded_blocks=0, stored_blocks=0, num_errors={"load": 0, "store": 176}))
    assert verdict.kind is Kind.FAILS
    assert verdict.sentences == (
        "Whatever was to be stored here or read from here in this period failed.",
        "176 copies failed (0 loads, 176 stores): the engine's log says why.",
    )


def test_a_tier_from_which_nothing_came_and_into_which_nothing_went_was_not_used() -> None:
    assert judged(TierCost("remote", loaded_blocks=0, stored_blocks=0)).kind is Kind.UNUSED
    assert judged(TierCost("gpu")).kind is Kind.UNUSED
    assert judged(TierCost("remote")).sentences == ("No engine tells what this tier loads and stores.",)


def test_gpu_is_read_where_it_is_and_pays_from_its_first_hit() -> None:
    verdict = judged(TierCost("gpu", hit_tokens=1_600, saved_seconds=3.2))
    assert verdict.kind is Kind.PAYS
    assert verdict.sentences == ("Pays: its hits saved about 3.2 s of prefill.",)


def test_what_went_wrong_and_what_was_left_aside_is_said_in_sentences_of_their_own() -> None:
    verdict = judged(num_errors={"load": 2, "store": 1}, skipped_tokens=480, stored_blocks=60_000, is_partly_saved=True)
    text = " ".join(verdict.sentences)
    assert "Its server was given up 2 times" in " ".join(judged(num_given_up=2).sentences)
    assert "3 copies failed (2 loads, 1 stores)" in text
    assert "480 tokens that it had were computed all the same" in text
    assert "Of 60,000 stored blocks 1,000 were read" in text
    assert "left out of the seconds" in text


def test_a_card_says_not_told_where_nothing_was_told_and_none_where_nothing_happened() -> None:
    (untold,) = tier_cards(costs(TierCost("disk", hit_tokens=4_000)))
    facts = {fact["name"]: (fact["value"], fact["more"]) for fact in untold["facts"]}
    assert facts["Prompt work saved"] == ("10.0 %", "4,000 hit tokens")
    for name in ("A hit costs", "Loaded", "Stored", "Failed copies", "Evicted"):
        assert facts[name] == ("–", "not told"), name
    assert facts["Not worth loading"][0] == facts["Computed again soon after"][0] == "not told"
    (told,) = tier_cards(costs(DISK))
    facts = {fact["name"]: (fact["value"], fact["more"]) for fact in told["facts"]}
    assert facts["A hit costs"] == ("250 ms / 1,000 tokens", "p50 3.44 ms, p95 4.84 ms a block")
    assert facts["Stored"] == ("1.95 GiB", "2,000 blocks in 10 s at 200 MiB/s")
    assert facts["Failed copies"] == (*facts["Not worth loading"][:1], "") == ("none", "")
    assert facts["Evicted"] == ("12 blocks", "12 capacity")


def test_what_computing_costs_is_said_with_what_it_was_measured_over() -> None:
    assert prefill_text(costs(DISK)) == "Computing 1,000 prompt tokens took 2 s (measured over 10,000 tokens)."
    assert "not measured" in prefill_text(costs(DISK, prefill_tokens=3))
