"""The admin's tier pages: how blocks get into a tier, out of it and up from it, and whose."""

import pytest
from django.test import Client

from dashboard.models import TierSetting
from dashboard.services.tiers import Wish
from dashboard.tier_modes import modes_of
from tests.dashboard.live_engine import publish, take_messages
from tests.dashboard.tier_pages import live, open_form, save
from tiers import LoadChoice, Policy, Tier, TierConfig, WriteMode

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("valkey")]


def test_the_gpu_tier_has_a_policy_and_none_of_the_other_modes(admin: Client, cpu: TierSetting) -> None:
    gpu = TierSetting.objects.get(cache_tier="gpu")
    assert set(open_form(admin, gpu)) == {"size", "policy", "tenant_quota", "seen"}
    assert live(admin, "gpu")["modes"] == "LRU"


def test_when_a_block_is_stored_and_loaded_can_be_chosen_and_is_history(admin: Client, cpu: TierSetting) -> None:
    publish(cpu={})
    page = save(admin, cpu, write_mode="write_selective", store_after_hits="3", load="when_cheaper")
    assert "write mode write back → write selective, store at hit 2 → at hit 3, load always → when cheaper" in page
    cpu.refresh_from_db()
    assert (cpu.write_mode, cpu.store_after_hits, cpu.load) == ("write_selective", 3, "when_cheaper")
    assert live(admin, "cpu")["modes"] == "LRU, write selective at hit 3, loaded when cheaper"
    assert take_messages() == [{"op": "reconcile"}]


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ({"store_after_hits": "0"}, "greater than or equal to 1"),
        ({"store_after_hits": "1001"}, "less than or equal to 1000"),
        ({"store_after_hits": "2.5"}, "Enter a whole number"),
        ({"load": "sometimes"}, "sometimes is not one of the available choices"),
        ({"write_mode": "write_around"}, "write_around is not one of the available choices"),
        ({"tenant_quota": "0"}, "greater than or equal to 0.01"),
        ({"tenant_quota": "1.5"}, "less than or equal to 1"),
        ({"tenant_quota": "half"}, "Enter a number"),
    ],
)
def test_a_mode_that_cannot_be_is_refused_and_the_old_ones_stay(
    admin: Client, cpu: TierSetting, typed: dict[str, str], sentence: str
) -> None:
    before = Wish.of(cpu)
    assert sentence in save(admin, cpu, **typed)
    cpu.refresh_from_db()
    assert Wish.of(cpu) == before
    assert take_messages() == []


def test_the_largest_share_of_a_tenant_is_chosen_for_each_tier(admin: Client, cpu: TierSetting) -> None:
    page = save(admin, cpu, tenant_quota="0.5")
    assert "largest share of one tenant 100 % → 50 %" in page
    assert live(admin, "cpu")["modes"] == "LRU, write back, loaded always, a tenant at most 50 %"
    save(admin, TierSetting.objects.get(cache_tier="gpu"), tenant_quota="0.25")
    assert live(admin, "gpu")["modes"] == "LRU, a tenant at most 25 %"


def test_modes_that_the_engine_does_not_run_with_yet_are_pending(admin: Client, cpu: TierSetting) -> None:
    publish(cpu={"modes": modes_of(cpu)})
    assert (live(admin, "cpu")["state"], live(admin, "cpu")["applied_modes"]) == ("applied", "")
    save(admin, cpu, load="when_cheaper")
    row = live(admin, "cpu")
    assert (row["state"], row["modes"]) == ("pending", "LRU, write back, loaded when cheaper")
    assert row["applied_modes"] == "runs with LRU, write back, loaded always"


def test_every_mode_that_the_tiers_know_can_be_chosen_and_the_first_ones_are_theirs(cpu: TierSetting) -> None:
    assert TierSetting.Policy.values == list(Policy)
    assert TierSetting.WriteMode.values == list(WriteMode)
    assert TierSetting.Load.values == list(LoadChoice)
    assert modes_of(cpu) == modes_of(TierConfig(Tier.CPU, 0))


@pytest.mark.parametrize("policy", tuple(Policy))
def test_every_policy_that_the_tiers_know_can_be_chosen(admin: Client, cpu: TierSetting, policy: Policy) -> None:
    save(admin, cpu, policy=policy.value)
    cpu.refresh_from_db()
    assert cpu.policy == policy
    shown = {"lru": "LRU", "s3fifo": "S3-FIFO", "arc": "ARC"}[policy]
    assert live(admin, "cpu")["modes"] == f"{shown}, write back, loaded always"


@pytest.mark.parametrize("policy", ["", "mru"])
def test_a_policy_that_does_not_exist_is_refused(admin: Client, cpu: TierSetting, policy: str) -> None:
    assert "errornote" in save(admin, cpu, policy=policy)
