"""The admin's tier pages: sizes that are typed, what is refused, who may use them."""

import json
from dataclasses import replace

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from dashboard.models import TierChange, TierSetting
from dashboard.services import tiers
from dashboard.services.tiers import Wish
from tests.dashboard.live_engine import GIB, publish, take_messages
from tests.dashboard.tier_pages import LIST, change_url, clear_url, live, open_form, save

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("valkey")]


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


def test_another_setting_can_be_changed_while_the_size_is_above_what_the_machine_has_now(
    admin: Client, cpu: TierSetting
) -> None:
    publish(cpu={"max_bytes": GIB // 2})
    save(admin, cpu, write_mode="write_through")
    cpu.refresh_from_db()
    assert cpu.write_mode == "write_through"


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
