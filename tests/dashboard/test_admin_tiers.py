"""The admin's tier pages: what they show, what they refuse, who may use them."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from html import escape
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from dashboard import valkey as valkey_module
from dashboard import zone
from dashboard.models import TierChange, TierSetting
from dashboard.services import tiers
from dashboard.services.tiers import Wish
from dashboard.tier_modes import modes_of
from tests.dashboard.live_engine import BLOCK_BYTES, GIB, publish, take_messages
from tiers import LoadChoice, Policy, Tier, TierConfig, WriteMode

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("valkey")]

LIST = "/admin/dashboard/tiersetting/"


@pytest.fixture
def admin(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("ada"))
    return client


@pytest.fixture
def cpu() -> TierSetting:
    tiers.ensure_settings("local", {"gpu": GIB, "cpu": GIB, "disk": GIB})
    return TierSetting.objects.get(cache_tier="cpu")


def change_url(setting: TierSetting) -> str:
    return reverse("admin:dashboard_tiersetting_change", args=[setting.pk])


def clear_url(setting: TierSetting) -> str:
    return reverse("admin:dashboard_tiersetting_clear", args=[setting.pk])


def open_form(client: Client, setting: TierSetting) -> dict[str, str]:
    """What a browser would post if nothing was touched."""
    form = client.get(change_url(setting)).context["adminform"].form
    return {name: form[name].value() for name in form.fields if form[name].value() is not None}


def save(client: Client, setting: TierSetting, **typed: str) -> str:
    """The text of the page that comes after saving."""
    response = client.post(change_url(setting), {**open_form(client, setting), **typed}, follow=True)
    assert response.status_code == 200
    return response.content.decode()


def live(client: Client, tier: str) -> dict[str, object]:
    panel = client.get(f"{LIST}live/").json()
    return next(row for engine in panel["engines"] for row in engine["tiers"] if row["cache_tier"] == tier)


def test_a_size_is_typed_as_people_write_it_and_the_engine_hears_of_it(admin: Client, cpu: TierSetting) -> None:
    publish(cpu={})
    page = save(admin, cpu, size="1.5 gib")
    cpu.refresh_from_db()
    assert cpu.desired_bytes == 3 * GIB // 2
    assert take_messages() == [{"op": "reconcile"}]
    assert "CPU DRAM tier of local: resize 1 GiB → 1.5 GiB. The engine applies it within two seconds." in page
    assert TierChange.objects.get().author == User.objects.get(username="ada")


def test_saving_an_untouched_form_writes_no_history_even_for_a_size_that_is_not_round(
    admin: Client, cpu: TierSetting
) -> None:
    TierSetting.objects.filter(pk=cpu.pk).update(desired_bytes=GIB + 1)
    assert "Nothing was changed." in save(admin, cpu)
    assert not TierChange.objects.exists()
    assert take_messages() == []


def test_a_size_that_is_no_size_is_refused_in_one_sentence(admin: Client, cpu: TierSetting) -> None:
    assert "“lots” is not a size; write it like 2 GiB, 512 MiB or 0." in save(admin, cpu, size="lots")


def test_more_than_the_machine_has_is_refused_with_the_limit_and_its_reason(admin: Client, cpu: TierSetting) -> None:
    publish(cpu={})
    page = save(admin, cpu, size="9 GiB")
    assert "The CPU DRAM tier of local can have at most 8 GiB (8 GiB of memory are free); 9 GiB was asked for." in page
    cpu.refresh_from_db()
    assert cpu.desired_bytes == GIB


def test_less_than_the_engine_needs_is_refused_with_the_limit(admin: Client, cpu: TierSetting) -> None:
    gpu = TierSetting.objects.get(cache_tier="gpu")
    publish(gpu={"min_bytes": GIB // 2, "min_reason": "one request of the longest length"})
    page = save(admin, gpu, size="1 MiB")
    assert "needs at least 512 MiB (one request of the longest length); 1 MiB was asked for." in page


def test_a_size_below_one_block_is_refused_since_a_unit_was_left_out(admin: Client, cpu: TierSetting) -> None:
    publish(cpu={})
    page = save(admin, cpu, size="128")
    assert "needs at least 720 KiB, which is one block, or 0 to switch it off; 128 B was asked for." in page
    cpu.refresh_from_db()
    assert cpu.desired_bytes == GIB


def test_the_gpu_tier_cannot_be_switched_off_even_while_its_engine_is_offline(admin: Client, cpu: TierSetting) -> None:
    gpu = TierSetting.objects.get(cache_tier="gpu")
    assert "The GPU tier cannot be zero: attention reads from it." in save(admin, gpu, size="0")
    gpu.refresh_from_db()
    assert gpu.desired_bytes == GIB


@pytest.mark.parametrize("tier", ["cpu", "disk"])
def test_a_slower_tier_can_be_switched_off(admin: Client, cpu: TierSetting, tier: str) -> None:
    setting = TierSetting.objects.get(cache_tier=tier)
    publish(cpu={}, disk={})
    save(admin, setting, size="0", confirmed="on")
    setting.refresh_from_db()
    assert setting.desired_bytes == 0


@pytest.mark.parametrize(
    ("size", "change"), [("100 MiB", "1 GiB → 100 MiB is ▼ ÷ 10"), ("0", "1 GiB → 0 B is ▼ switched off")]
)
def test_a_size_more_than_ten_times_smaller_is_saved_only_once_it_is_confirmed(
    admin: Client, cpu: TierSetting, size: str, change: str
) -> None:
    publish(cpu={})
    opened = admin.get(change_url(cpu)).content.decode()
    assert 'type="checkbox"' not in opened
    page = save(admin, cpu, size=size)
    assert f"{change}: what the tier then has no room for is dropped." in page
    assert 'type="checkbox" name="confirmed"' in page
    assert not TierChange.objects.exists()
    assert "The engine applies it within two seconds." in save(admin, cpu, size=size, confirmed="on")
    assert TierChange.objects.count() == 1


@pytest.mark.parametrize("size", ["103 MiB", "1 GiB", "7 GiB"])
def test_a_size_that_is_larger_or_a_little_smaller_needs_no_confirmation(
    admin: Client, cpu: TierSetting, size: str
) -> None:
    publish(cpu={})
    save(admin, cpu, size=size, write_mode="write_through")
    assert TierChange.objects.exists()


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


@pytest.mark.parametrize(
    "cookie", ["", "Nowhere/Town", "../../etc/passwd", "/etc/passwd", "a" * 3000, "\x00", "Europe"]
)
def test_a_zone_that_is_none_is_utc(admin: Client, cookie: str) -> None:
    admin.cookies[zone.COOKIE] = cookie
    assert "Times are in UTC." in admin.get("/admin/").content.decode()


def test_another_setting_can_be_changed_while_the_size_is_above_what_the_machine_has_now(
    admin: Client, cpu: TierSetting
) -> None:
    publish(cpu={"max_bytes": GIB // 2})
    save(admin, cpu, write_mode="write_through")
    cpu.refresh_from_db()
    assert cpu.write_mode == "write_through"


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
    assert "tenant quota 100 % → 50 %" in page
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


def test_a_size_for_an_offline_engine_is_kept_and_the_page_says_when_it_applies(
    admin: Client, cpu: TierSetting
) -> None:
    page = save(admin, cpu, size="2 GiB")
    assert "The engine is offline; it applies this at its next start." in page
    cpu.refresh_from_db()
    assert cpu.desired_bytes == 2 * GIB


def test_the_second_of_two_admins_gets_a_sentence_and_overwrites_nothing(admin: Client, cpu: TierSetting) -> None:
    opened = open_form(admin, cpu)
    tiers.change(
        setting_id=cpu.pk,
        seen=Wish.of(cpu),
        wish=replace(Wish.of(cpu), desired_bytes=2 * GIB),
        author=User.objects.create_user("grace"),
        now=cpu.changed_at,
    )
    response = admin.post(change_url(cpu), {**opened, "size": "3 GiB"}, follow=True)
    assert "Somebody else changed this tier while this page was open" in response.content.decode()
    assert "It is now 2 GiB, LRU, write back, loaded always: open the page again" in response.content.decode()
    cpu.refresh_from_db()
    assert cpu.desired_bytes == 2 * GIB


@pytest.mark.parametrize("seen", ["", "nonsense", '[1, "lru", "write_back"]'])
def test_a_forged_record_of_what_was_seen_saves_nothing(admin: Client, cpu: TierSetting, seen: str) -> None:
    assert "does not say which sizes you saw, so nothing was saved" in save(admin, cpu, size="3 GiB", seen=seen)


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


def test_clearing_first_shows_what_the_tier_holds_and_drops_nothing(admin: Client, cpu: TierSetting) -> None:
    publish(cpu={})
    page = admin.get(clear_url(cpu)).content.decode()
    assert all(part in page for part in ("364 blocks", "256 MiB", "5,824 resident tokens"))
    assert take_messages() == []
    assert not TierChange.objects.exists()


def test_a_confirmed_clear_reaches_the_engine_for_that_tier_only(admin: Client, cpu: TierSetting) -> None:
    publish(cpu={})
    page = admin.post(clear_url(cpu), follow=True).content.decode()
    asked = TierChange.objects.get()
    assert take_messages() == [{"op": "clear", "tier": "cpu", "change_id": asked.pk}]
    assert "the engine was asked to drop 364 blocks (256 MiB)" in page
    assert "clear: waiting for the engine, by ada" in page
    tiers.record_cleared(asked.pk, "364 blocks dropped")
    assert "clear: 364 blocks dropped, by ada" in str(live(admin, "cpu")["last_change"])


def test_an_offline_engine_cannot_be_cleared(admin: Client, cpu: TierSetting) -> None:
    page = admin.post(clear_url(cpu), follow=True).content.decode()
    assert "There is nothing that could be cleared now." in page
    assert take_messages() == []
    assert not TierChange.objects.exists()


def test_a_clear_needs_the_csrf_token(cpu: TierSetting) -> None:
    publish(cpu={})
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(User.objects.create_superuser("ada"))
    assert strict.post(clear_url(cpu)).status_code == 403
    assert take_messages() == []


def test_staff_who_may_only_look_see_everything_and_change_nothing(client: Client, cpu: TierSetting) -> None:
    publish(cpu={})
    looker = User.objects.create_user("grace", is_staff=True)
    looker.user_permissions.add(Permission.objects.get(codename="view_tiersetting"))
    client.force_login(looker)
    assert "1 GiB" in client.get(change_url(cpu)).content.decode()
    assert ">Clear</a>" not in client.get(LIST).content.decode()
    assert client.get(f"{LIST}live/").status_code == 200
    assert client.post(change_url(cpu), {"size": "3 GiB"}).status_code == 403
    assert client.get(clear_url(cpu)).status_code == 403
    assert client.post(clear_url(cpu)).status_code == 403
    assert take_messages() == []


def test_staff_without_the_permission_do_not_see_the_tiers(client: Client, cpu: TierSetting) -> None:
    client.force_login(User.objects.create_user("grace", is_staff=True))
    assert "tier-panel" not in client.get("/admin/").content.decode()
    assert client.get(f"{LIST}live/").status_code == 403


@pytest.mark.parametrize("path", ["/admin/", LIST, f"{LIST}live/", f"{LIST}1/change/", f"{LIST}1/clear/"])
def test_people_who_are_not_staff_do_not_get_into_the_admin(client: Client, path: str) -> None:
    client.force_login(User.objects.create_user("eve"))
    assert client.get(path).headers["Location"].startswith("/admin/login/")


def test_tiers_are_neither_added_nor_deleted_by_hand(admin: Client, cpu: TierSetting) -> None:
    assert admin.get(f"{LIST}add/").status_code == 403
    assert admin.post(f"{LIST}{cpu.pk}/delete/", {"post": "yes"}).status_code == 403
    assert admin.post(LIST, {"action": "delete_selected", "_selected_action": cpu.pk}).status_code in (200, 302)
    assert TierSetting.objects.count() == 3


@pytest.mark.parametrize("number", ["abc", "9999", "9" * 30])
def test_the_history_of_a_tier_that_is_not_there_is_not_found(admin: Client, number: str) -> None:
    assert admin.get(f"{LIST}{number}/history/").status_code == 404


def test_the_history_button_leads_to_the_history_of_that_tier(admin: Client, cpu: TierSetting) -> None:
    save(admin, cpu, size="2 GiB")
    page = admin.get(f"{LIST}{cpu.pk}/history/", follow=True)
    assert page.status_code == 200
    assert "2 GiB" in page.content.decode()


def test_an_engine_with_markup_in_its_name_is_only_text(admin: Client) -> None:
    tiers.ensure_settings("<script>x</script>", {"cpu": 1})
    assert "<script>x" not in admin.get(LIST).content.decode()
    assert json.loads(admin.get(f"{LIST}live/").content)["engines"][0]["name"] == "<script>x</script>"
