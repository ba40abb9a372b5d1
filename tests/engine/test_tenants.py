"""Tokens by tenant: against a naive oracle, with as many names as are allowed, and nothing lost to the rest."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.engine_config import EngineConfig
from engine.sequence import Admission
from engine.tenants import OTHER, TenantCounts, Tenants
from tests.engine.harness import SLAB, make_rig
from tiers import TIERS, Tier, TierConfig

NOTHING = TenantCounts(0, dict.fromkeys(TIERS, 0), 0)
ADMISSIONS = st.builds(
    lambda tiers, rest: Admission(0.0, 4 * len(tiers) + rest, 4, tuple(tiers)),
    st.lists(st.sampled_from(TIERS), max_size=5),
    st.integers(1, 9),
)


@given(
    known=st.lists(st.sampled_from("abcdef"), unique=True, max_size=4),
    max_named=st.integers(0, 5),
    traffic=st.lists(st.tuples(st.sampled_from("abcdefghi"), ADMISSIONS), max_size=30),
)
def test_every_token_is_counted_once_under_a_name_or_with_the_others(
    known: list[str], max_named: int, traffic: list[tuple[str, Admission]]
) -> None:
    tenants = Tenants(known, max_named)
    named = list(dict.fromkeys([*known[:max_named], *(tenant for tenant, _ in traffic)]))[:max_named]
    oracle: Counter[tuple[str, str]] = Counter()
    for tenant, admission in traffic:
        tenants.admitted(tenant, admission)
        name = tenant if tenant in named else OTHER
        oracle[name, "prompt"] += admission.prompt_tokens
        oracle[name, "computed"] += admission.computed_tokens
        oracle.update({(name, tier): tokens for tier, tokens in admission.hit_tokens.items()})
    counts = tenants.counts()
    assert set(counts) <= {OTHER, *named}
    for name, told in counts.items():
        assert (told.prompt_tokens, told.computed_tokens) == (oracle[name, "prompt"], oracle[name, "computed"])
        assert told.hit_tokens == {tier: oracle[name, tier] for tier in TIERS}


def test_the_first_names_and_the_others_are_there_from_the_start_with_zero() -> None:
    assert Tenants(["a", "b", "c"], 2).counts() == {OTHER: NOTHING, "a": NOTHING, "b": NOTHING}


def test_a_tenant_that_came_too_late_stays_with_the_others() -> None:
    tenants = Tenants([], 1)
    for name in ("a", "b", "b"):
        tenants.admitted(name, Admission(0.0, 5, 4, (Tier.CPU,)))
    assert {name: told.prompt_tokens for name, told in tenants.counts().items()} == {OTHER: 10, "a": 5}


def test_an_engine_counts_each_request_for_its_tenant_once_also_where_it_is_preempted() -> None:
    rig = make_rig(gpu=6, cpu=4, tenants=("a",), max_tenants=2)
    answers = [rig.submit(f"r{n}", [n % 3] * 9, 8, tenant="abc"[n % 3], ignore_eos=True) for n in range(12)]
    rig.run()
    assert sum(answer.usage.num_preemptions for answer in answers) > 0
    told = rig.engine.snapshot().counters.tenants
    assert set(told) == {"a", "b", OTHER}
    for name, first in (("a", 0), ("b", 1), (OTHER, 2)):
        assert told[name].prompt_tokens == 4 * 9
        assert told[name].computed_tokens == sum(answer.usage.computed_tokens for answer in answers[first::3])


def test_fewer_tenants_than_none_are_refused() -> None:
    with pytest.raises(ValueError, match="max_tenants is -1; expected 0 or more"):
        EngineConfig("e", (TierConfig(Tier.GPU, SLAB.num_bytes),), max_tenants=-1)
