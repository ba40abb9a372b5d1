"""Tokens by tenant as charts and tables read them: against a naive sum, with nothing lost to the rest."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dashboard.models import ApiKey, Series
from dashboard.selectors.period import Period
from dashboard.selectors.tenants import (
    MOST_DRAWN,
    TenantTotals,
    all_tenants,
    counted_tenants,
    tenant_series,
    tenant_totals,
)
from dashboard.services.api_keys import create_api_key
from dashboard.tenants import OTHER
from tests.dashboard.amounts import AmountStore

pytestmark = pytest.mark.usefixtures("store")

START = 1_800_000_000
PERIOD = Period(START, START + 100, 10)
NAMES = [*"abcdefgh", OTHER]
REQUESTS = st.lists(
    st.tuples(
        st.sampled_from(NAMES),
        st.integers(0, 99),
        st.dictionaries(st.sampled_from(["gpu", "cpu", "remote"]), st.integers(1, 50)),
        st.integers(1, 50),
    ),
    max_size=12,
)


def counted(store: AmountStore, tenant: str, at: int, hits: dict[str, int], computed: int) -> None:
    store.add(("tenant_prompt_tokens", "", tenant), at, sum(hits.values()) + computed)
    store.add(("tenant_computed_tokens", "", tenant), at, computed)
    for tier, tokens in hits.items():
        store.add(("tenant_hit_tokens", tier, tenant), at, tokens)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15, deadline=None)
@given(REQUESTS)
def test_totals_and_series_hold_every_token_once(requests: list[tuple[str, int, dict[str, int], int]]) -> None:
    store = AmountStore()
    prompt: Counter[str] = Counter()
    hits: Counter[tuple[str, str]] = Counter()
    for second in range(0, 100, 10):
        store.add(("scrapes", "", ""), START + second, 1)
    for tenant, second, by_tier, computed in requests:
        counted(store, tenant, START + second, by_tier, computed)
        prompt[tenant] += sum(by_tier.values()) + computed
        hits.update({(tenant, tier): tokens for tier, tokens in by_tier.items()})

    totals = tenant_totals(PERIOD)
    assert {told.tenant: told.prompt_tokens for told in totals} == dict(prompt)
    assert {(told.tenant, tier): n for told in totals for tier, n in told.hit_tokens.items()} == dict(hits)
    assert all(told.prompt_tokens == sum(told.hit_tokens.values()) + told.computed_tokens for told in totals)

    drawn = tenant_series(PERIOD)["tenants"]
    assert len([name for name in drawn if name != OTHER]) <= MOST_DRAWN
    assert list(drawn) == sorted(drawn, key=lambda name: (name == OTHER, name))
    rest = {name: tokens for name, tokens in prompt.items() if name not in drawn or name == OTHER}
    for name, told in drawn.items():
        assert sum(told["prompt"]) == (sum(rest.values()) if name == OTHER else prompt[name])
    assert sum(sum(told["hit"]) for told in drawn.values()) == hits.total()


def test_the_tenants_with_the_most_tokens_are_drawn_and_the_rest_as_one() -> None:
    store = AmountStore()
    store.add(("scrapes", "", ""), START, 1)
    for rank, tenant in enumerate("abcdefgh"):
        counted(store, tenant, START, {"gpu": 10 * rank}, 1)
    counted(store, OTHER, START, {}, 5)
    drawn = tenant_series(PERIOD)["tenants"]
    assert list(drawn) == [*"cdefgh", OTHER]
    assert drawn[OTHER] == {"prompt": [1 + 11 + 5, *[None] * 9], "hit": [10, *[None] * 9]}
    assert [told.tenant for told in tenant_totals(PERIOD)] == [*"hgfedcba", OTHER]


@pytest.mark.parametrize(
    ("period", "step"),
    [
        (Period(START, START + 6 * 3600, 120), 120),
        (Period(START - START % 600, START - START % 600 + 86_400, 600), 3_600),
        (Period(START - START % 3600, START - START % 3600 + 7 * 86_400, 3_600), 3_600),
        (Period(START - START % 21600, START - START % 21600 + 30 * 86_400, 21_600), 86_400),
    ],
)
def test_a_long_period_comes_in_whole_hours_or_days_that_hold_it(period: Period, step: int) -> None:
    AmountStore()
    series = tenant_series(period)
    assert series["step_seconds"] == step
    assert series["starts"][0] <= period.start
    assert series["starts"][-1] + step >= period.end


def test_tenants_are_those_with_a_key_and_those_that_were_counted_after_the_common_pool() -> None:
    store = AmountStore()
    create_api_key("default")
    for name in ("common", OTHER):
        store.series(("tenant_prompt_tokens", "", name))
    assert all_tenants() == []
    create_api_key("b1", "umbrella")
    store.series(("tenant_prompt_tokens", "", "acme"))
    assert all_tenants() == ["common", "acme", "umbrella"]


def test_an_engine_goes_on_counting_by_name_those_that_it_counted_first_and_that_still_have_a_key() -> None:
    store = AmountStore()
    for number, tenant in enumerate(("umbrella", "gone", "acme", "revoked")):
        store.series(("tenant_prompt_tokens", "", tenant))
        if tenant != "gone":
            create_api_key(str(number), tenant)
    store.series(("tenant_prompt_tokens", "", "elsewhere"), engine="b")
    create_api_key("e", "elsewhere")
    ApiKey.objects.filter(tenant="revoked").update(is_active=False)
    assert counted_tenants("a") == ["umbrella", "acme"]


def test_a_tenant_s_name_is_no_longer_than_what_a_series_holds_beside_a_capacity() -> None:
    longest: Any = Series._meta.get_field("detail")
    name: Any = ApiKey._meta.get_field("tenant")
    assert len("123456789012345 ") + name.max_length == longest.max_length


def test_no_tenant_told_is_no_tenant() -> None:
    AmountStore().add(("prompt_tokens", "", ""), START, 5)
    assert tenant_totals(PERIOD) == []
    assert tenant_series(PERIOD)["tenants"] == {}


def test_a_tenant_that_hit_nothing_has_no_tier() -> None:
    counted(AmountStore(), "a", START, {}, 5)
    assert tenant_totals(PERIOD) == [TenantTotals("a", 5, 5)]
