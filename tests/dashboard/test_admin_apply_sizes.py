"""Sizes from the what-if page, confirmed and applied in the admin; the prediction is kept beside what then comes."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from dashboard.models import Prediction, TierChange, TierSetting
from dashboard.selectors.track_record import compared
from dashboard.services import tiers
from dashboard.views.track_record import track_record
from tests.dashboard.live_engine import BLOCK_BYTES, publish, take_messages
from tests.dashboard.seeded import SeededEngine, lively

pytestmark = [pytest.mark.django_db(transaction=True)]

SIZES = {"gpu": 130 * BLOCK_BYTES, "cpu": 200 * BLOCK_BYTES, "disk": 2_750 * BLOCK_BYTES}
LARGER = SIZES | {"cpu": 400 * BLOCK_BYTES}


@pytest.fixture
def engine(valkey: str) -> None:
    """One with settings that run, and a quarter of an hour of traffic."""
    lively(time.time(), seconds=900).store(time.time())
    tiers.ensure_settings("local", SIZES)
    told: dict[str, Any] = {tier: {"capacity_bytes": size, "max_bytes": 4 * 2**30} for tier, size in SIZES.items()}
    publish(**told)


def address(client: Client, sizes: dict[str, int]) -> str:
    query = "&".join(f"{tier}={size}" for tier, size in sizes.items())
    return str(client.get(f"/api/what-if.json?range=1h&{query}").json()["apply_url"])


def typed(client: Client, url: str, **changes: str) -> dict[str, str]:
    """What a browser would post if nothing else was touched."""
    forms = [row["form"] for row in client.get(url).context["rows"]]
    fields = {form.add_prefix(name): form[name].value() for form in forms for name in form.fields}
    return {name: value for name, value in fields.items() if value is not None} | changes


def save(client: Client, url: str, **changes: str) -> str:
    response = client.post(url, typed(client, url, **changes), follow=True)
    assert response.status_code == 200
    return response.content.decode()


@pytest.mark.usefixtures("engine")
def test_the_sizes_are_filled_in_and_applied_together_with_what_was_predicted_for_them(admin: Client) -> None:
    url = address(admin, LARGER)
    assert typed(admin, url)["cpu-size"] == "281.25 MiB"
    expected = admin.get(f"/api/what-if.json?range=1h&cpu={LARGER['cpu']}").json()["predicted"]
    page = save(admin, url)
    assert "Engine local: cpu resize 140.62 MiB → 281.25 MiB" in page
    assert "What was predicted is kept" in page
    assert TierSetting.objects.get(cache_tier="cpu").desired_bytes == LARGER["cpu"]
    assert take_messages() == [{"op": "reconcile"}]
    kept = Prediction.objects.get()
    assert (kept.sizes, kept.old_sizes, kept.engine) == (LARGER, SIZES, "local")
    assert kept.predicted["hit"] == pytest.approx(expected["hit"], abs=1e-5)
    assert kept.author == User.objects.get(username="ada")
    assert kept.period_end - kept.period_start == 3_600


@pytest.mark.usefixtures("engine")
def test_another_size_may_be_typed_before_it_is_applied_and_the_prediction_is_for_that_one(admin: Client) -> None:
    save(admin, address(admin, LARGER), **{"cpu-size": "0", "cpu-confirmed": "on"})
    kept = Prediction.objects.get()
    assert kept.sizes["cpu"] == 0
    assert kept.predicted["hit"]["cpu"] == 0


@pytest.mark.usefixtures("engine")
def test_what_the_machine_has_not_is_refused_and_nothing_is_applied(admin: Client) -> None:
    page = save(admin, address(admin, LARGER), **{"disk-size": "9 GiB"})
    assert "can have at most 4 GiB" in page
    assert not TierChange.objects.exists()
    assert not Prediction.objects.exists()


@pytest.mark.usefixtures("engine")
def test_today_s_sizes_change_nothing_and_keep_no_prediction(admin: Client) -> None:
    assert "Nothing was changed." in save(admin, address(admin, SIZES))
    assert not Prediction.objects.exists()


@pytest.mark.usefixtures("engine")
def test_one_tier_that_somebody_else_changed_leaves_all_as_they_are(admin: Client) -> None:
    url = address(admin, LARGER)
    fields = typed(admin, url)
    TierSetting.objects.filter(cache_tier="gpu").update(policy="arc")
    assert "Somebody else changed this tier" in admin.post(url, fields, follow=True).content.decode()
    assert TierSetting.objects.get(cache_tier="cpu").desired_bytes == SIZES["cpu"]


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("query", ["start=0&end=x", "", "start=5&end=1"])
def test_sizes_without_a_period_are_applied_without_a_prediction(admin: Client, query: str) -> None:
    url = f"{reverse('admin:dashboard_tiersetting_apply')}?engine=local&cpu={LARGER['cpu']}&disk=lots&{query}"
    assert "Nothing was predicted." in save(admin, url)
    assert not Prediction.objects.exists()


@pytest.mark.usefixtures("engine")
def test_only_those_who_may_change_tiers_see_it(client: Client) -> None:
    client.force_login(User.objects.create_user("bob", is_staff=True))
    assert client.get(reverse("admin:dashboard_tiersetting_apply") + "?engine=local").status_code == 403
    client.force_login(User.objects.create_superuser("ada"))
    assert client.get(reverse("admin:dashboard_tiersetting_apply") + "?engine=nobody").status_code == 404


# -- the track record ------------------------------------------------------------------------------------------------


def applied(at: float, **changes: Any) -> Prediction:
    return Prediction.objects.create(
        engine="local",
        at=datetime.fromtimestamp(at, UTC),
        period_start=0,
        period_end=600,
        old_sizes=SIZES,
        sizes=LARGER,
        predicted={"hit": {"gpu": 0.5, "cpu": 0.1}, "ttft_seconds": 0.2, "sample_rate": 1.0},
        **changes,
    )


def asked(at: float, hits: dict[str, int], computed: int) -> None:
    engine = SeededEngine()
    engine.request(at, hits, computed, ttft=0.25)
    engine.store(at)


def test_what_was_measured_afterwards_is_compared_over_as_long_a_period() -> None:
    now = time.time() // 60 * 60
    applied(now - 1_200)
    asked(now - 900, {"gpu": 400, "cpu": 200}, 400)
    (row,) = track_record(now)
    assert row["compared"].startswith("10 minutes, as long as it was made from")
    assert "cpu 140.62 MiB → 281.25 MiB" in row["sizes"]
    told = {part["name"]: (part["predicted"], part["measured"], part["error"]) for part in row["parts"]}
    assert told["Hit rate"] == ("60.0 %", "60.0 %", "0.0 points")
    assert told["from gpu"] == ("50.0 %", "40.0 %", "+10.0 points")
    assert told["from cpu"] == ("10.0 %", "20.0 %", "−10.0 points")
    assert told["Mean TTFT"] == ("200 ms", "250 ms", "−20 %")


def test_a_comparison_ends_where_the_tiers_are_changed_again() -> None:
    now = time.time() // 60 * 60
    applied(now - 1_200)
    change = {"engine": "local", "cache_tier": "cpu", "action": "resize", "old_value": "1", "new_value": "2"}
    TierChange.objects.create(at=datetime.fromtimestamp(now - 900, UTC), **change)
    asked(now - 800, {"gpu": 100}, 0)
    (found,) = compared(now)
    assert (found.is_cut, found.hit) == (True, None)
    assert 280 <= found.seconds <= 300
    assert "until the tiers were changed again" in track_record(now)[0]["compared"]


def test_a_prediction_of_a_moment_ago_has_nothing_beside_it_yet() -> None:
    applied(time.time())
    (row,) = track_record(time.time())
    assert row["compared"] == "Nothing yet."
    assert {part["measured"] for part in row["parts"]} == {"–"}


def test_a_comparison_that_goes_on_says_how_far_it_is() -> None:
    now = time.time() // 60 * 60
    applied(now - 300)
    assert track_record(now)[0]["compared"].startswith("The first 4 minutes so far")


def test_after_the_fine_buckets_are_gone_whole_hours_are_compared() -> None:
    now = time.time()
    row = applied(now - 30 * 86_400)
    Prediction.objects.filter(pk=row.pk).update(period_end=6 * 3_600)
    (found,) = compared(now)
    assert found.seconds % 3_600 == 0
    assert timezone.now() - found.prediction.at > timedelta(days=29)


def test_the_page_and_the_admin_show_the_record(admin: Client, valkey: str) -> None:
    assert "Nothing was applied from this page yet." in admin.get("/what-if/").content.decode()
    applied(time.time() - 1_200)
    assert "cpu 140.62 MiB → 281.25 MiB" in admin.get("/what-if/").content.decode()
    assert "60.0 %" in admin.get("/admin/dashboard/prediction/").content.decode()
