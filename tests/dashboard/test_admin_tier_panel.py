"""The admin's panel of tiers: what was asked for, what the engine runs with and holds, and why they differ."""

from datetime import UTC, datetime
from html import escape
from typing import Any

import pytest
from django.test import Client

from dashboard import valkey as valkey_module
from dashboard import zone
from dashboard.models import TierSetting
from dashboard.services import tiers
from tests.dashboard.live_engine import BLOCK_BYTES, GIB, publish
from tests.dashboard.tier_pages import LIST, clear_url, live, save

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("valkey")]


def test_a_tier_that_holds_more_than_its_new_size_is_shrinking(admin: Client, cpu: TierSetting) -> None:
    publish(cpu={"used_bytes": GIB + 1})
    row = live(admin, "cpu")
    assert (row["state"], row["used_percent"]) == ("shrinking", 100)
    assert row["note"] == (
        "It still holds more than its new size: what running requests read leaves when they are done."
    )
    assert "364 blocks" in admin.get(clear_url(cpu)).content.decode()


def test_times_are_shown_in_the_zone_of_whoever_looks_and_it_is_named_once(admin: Client, cpu: TierSetting) -> None:
    tiers.clear(setting_id=cpu.pk, author=None, now=datetime(2026, 7, 2, 22, 4, 5, tzinfo=UTC))
    admin.cookies[zone.COOKIE] = "Asia/Kolkata"
    assert str(live(admin, "cpu")["last_change"]).endswith("2026-07-03 03:34:05")
    for path in (LIST, "/admin/dashboard/tierchange/"):
        page = admin.get(path).content.decode()
        assert "2026-07-03 03:34:05" in page
        assert page.count("Asia/Kolkata") == 1


def test_all_that_was_saved_together_is_the_last_change(admin: Client, cpu: TierSetting) -> None:
    save(admin, cpu, size="3 GiB")
    save(admin, cpu, size="2 GiB", policy="arc", tenant_quota="0.5")
    told = str(live(admin, "cpu")["last_change"])
    assert told.startswith("resize 3 GiB → 2 GiB, policy lru → arc, largest share of one tenant 100 % → 50 %, by ada, ")


@pytest.mark.parametrize(
    "cookie", ["", "Nowhere/Town", "../../etc/passwd", "/etc/passwd", "a" * 3000, "\x00", "Europe"]
)
def test_a_zone_that_is_none_is_utc(admin: Client, cookie: str) -> None:
    admin.cookies[zone.COOKIE] = cookie
    assert "Times are in UTC." in admin.get("/admin/").content.decode()


def test_the_panel_says_what_every_tier_was_asked_holds_and_could_have(admin: Client, cpu: TierSetting) -> None:
    publish(cpu={}, gpu={}, disk={})
    row = live(admin, "cpu")
    assert row["desired"] == "1 GiB"
    assert row["applied"] == "1 GiB"
    assert (row["used"], row["used_percent"]) == ("256 MiB", 25)
    assert row["resident_tokens"] == "5,824"
    assert (row["maximum"], row["maximum_reason"]) == ("8 GiB", "8 GiB of memory are free")
    assert (row["state"], row["note"]) == ("applied", "")


def test_the_panel_and_its_live_words_are_the_same(admin: Client, cpu: TierSetting) -> None:
    publish(cpu={}, gpu={}, disk={})
    page = admin.get(LIST).content.decode()
    for word in ("desired", "applied", "used", "resident_tokens", "maximum", "state", "last_change"):
        assert f'data-field="{word}">{escape(str(live(admin, "cpu")[word]))}<' in page


def test_the_tiers_come_fastest_first(admin: Client) -> None:
    tiers.ensure_settings("local", {"disk": 1, "gpu": 1, "cpu": 1})
    [engine] = admin.get(f"{LIST}live/").json()["engines"]
    assert [row["cache_tier"] for row in engine["tiers"]] == ["gpu", "cpu", "disk"]


@pytest.mark.parametrize("difference", [0, 1, -1, GIB % BLOCK_BYTES, BLOCK_BYTES - 1])
def test_a_size_within_a_block_of_what_was_asked_for_counts_as_applied(
    admin: Client, cpu: TierSetting, difference: int
) -> None:
    publish(cpu={"capacity_bytes": GIB - difference})
    assert live(admin, "cpu")["state"] == "applied"


def test_a_size_that_the_engine_has_not_taken_yet_is_pending(admin: Client, cpu: TierSetting) -> None:
    publish(cpu={"capacity_bytes": GIB // 2})
    assert live(admin, "cpu")["state"] == "pending"


def test_a_size_that_was_just_applied_is_seen_before_the_engine_publishes_again(
    admin: Client, cpu: TierSetting
) -> None:
    publish(cpu={"capacity_bytes": GIB // 2})
    tiers.record_applied("local", "cpu", GIB, "", cpu.changed_at)
    assert (live(admin, "cpu")["applied"], live(admin, "cpu")["state"]) == ("1 GiB", "applied")


def test_the_reason_of_a_refused_size_is_shown(admin: Client, cpu: TierSetting) -> None:
    publish(cpu={"capacity_bytes": GIB // 2})
    tiers.record_applied("local", "cpu", GIB // 2, "Only 700 MiB of memory are free.", cpu.changed_at)
    row = live(admin, "cpu")
    assert (row["state"], row["note"]) == ("differs", "Only 700 MiB of memory are free.")


def test_an_offline_engine_is_said_to_be_offline_and_shows_no_numbers(admin: Client, cpu: TierSetting) -> None:
    row = live(admin, "cpu")
    assert row["state"] == "offline"
    assert row["note"] == "Engine local is offline; the setting is kept and applied at its next start."
    assert row["used"] == row["resident_tokens"] == row["applied"] == "–"


def test_a_loading_engine_says_how_far_it_is(admin: Client, cpu: TierSetting) -> None:
    publish(status="loading")
    assert live(admin, "cpu")["state"] == "loading"
    assert admin.get(f"{LIST}live/").json()["engines"][0]["headline"] == "loading: reading weights 40%"


def test_an_engine_that_could_not_start_says_why(admin: Client, cpu: TierSetting) -> None:
    publish(status="failed")
    row = live(admin, "cpu")
    assert (row["state"], row["note"]) == ("failed", "Engine local could not start: reading weights")
    assert "There is nothing that could be cleared now." in admin.get(clear_url(cpu)).content.decode()


@pytest.mark.parametrize("text", ["", "[]", "null", "{", '{"tiers": 3}', '{"progress": 1}', '{"tiers": {"cpu": []}}'])
def test_a_snapshot_that_makes_no_sense_is_an_engine_that_is_not_there(
    admin: Client, cpu: TierSetting, text: str
) -> None:
    valkey_module.client().set(valkey_module.engine_key("local"), text)
    assert live(admin, "cpu")["state"] == "offline"


def test_without_valkey_the_pages_work_and_say_so(admin: Client, cpu: TierSetting, settings: Any) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    valkey_module.forget_clients()
    assert "Valkey cannot be reached" in admin.get(LIST).content.decode()
    assert live(admin, "cpu")["state"] == "unknown"
    assert "the engine applies this as soon as it can" in save(admin, cpu, size="2 GiB")
    cpu.refresh_from_db()
    assert cpu.desired_bytes == 2 * GIB


def test_before_any_engine_started_the_panel_says_what_will_come(admin: Client) -> None:
    assert "No engine has started yet." in admin.get(LIST).content.decode()


def test_the_tier_panel_is_on_the_admins_first_page(admin: Client, cpu: TierSetting) -> None:
    page = admin.get("/admin/").content.decode()
    assert page.index("tier-panel") < page.index("app-dashboard")
