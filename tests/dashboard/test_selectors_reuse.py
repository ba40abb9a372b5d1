"""The reuse curve of a period: counters by capacity that add up, also at bounds that counted nothing; how sampled."""

import pytest

from dashboard.selectors.period import Period
from dashboard.selectors.reuse import ReuseCurve, reuse_curve, tenant_curve
from tests.dashboard.amounts import AmountStore

pytestmark = pytest.mark.usefixtures("store")

START = 1_800_000_000
PERIOD = Period(START, START + 100, 10)
TOLD = {
    ("reuse_tokens", "", "16"): 5,
    ("reuse_tokens", "", "32"): 0,
    ("reuse_tokens", "", "128"): 70,
    ("reuse_tokens", "", "+Inf"): 25,
}


def test_the_curve_is_that_of_the_period_and_keeps_bounds_that_counted_nothing() -> None:
    store = AmountStore()
    for at in (START, START + 90, START + 100, START - 10):
        store.tell(at, TOLD)
    assert reuse_curve(PERIOD) == ReuseCurve((16, 32, 128), (10, 0, 140), 50, 200, None)


def test_engines_are_told_apart_and_add_up() -> None:
    store = AmountStore()
    store.tell(START, TOLD, "a")
    store.tell(START, TOLD, "b")
    assert reuse_curve(PERIOD, engine="a").tokens == (5, 0, 70)
    assert reuse_curve(PERIOD).total_tokens == 200
    assert reuse_curve(PERIOD, engine="a", model_name="other").total_tokens == 0


def test_an_engine_that_tells_nothing_has_an_empty_curve() -> None:
    AmountStore().tell(START, {("prompt_tokens", "", ""): 10})
    assert reuse_curve(PERIOD) == ReuseCurve((), (), 0, 0, None)


def test_the_sample_rate_is_the_mean_of_its_readings() -> None:
    store = AmountStore()
    for at, ppm in ((START, 1_000_000), (START + 20, 500_000)):
        store.tell(at, {("reuse_sample_ppm", "", ""): ppm})
    assert reuse_curve(PERIOD).sample_rate == 0.75


def test_tenants_whose_names_end_alike_are_told_apart() -> None:
    """A trace's tenants have any names."""
    told = {"acme": 5, "Acme": 70, "old acme": 300}
    AmountStore().tell(START, {("tenant_reuse_tokens", "", f"+Inf {name}"): tokens for name, tokens in told.items()})
    assert {name: tenant_curve(PERIOD, name, engine="a").total_tokens for name in told} == told
