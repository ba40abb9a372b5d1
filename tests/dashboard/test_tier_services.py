"""Sizes, modes, clears: what is stored, what the engine hears, and what two admins do to each other."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
import redis
from django.contrib.auth.models import User
from django.db import transaction
from django.test import override_settings
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from dashboard import valkey as valkey_module
from dashboard.models import TierChange, TierSetting
from dashboard.services import tiers
from dashboard.services.tiers import ChangedMeanwhileError, Wish
from tests.dashboard.live_engine import take_messages

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
MIB = 2**20


@pytest.fixture
def author(db: None) -> User:
    return User.objects.create_user("ada")


@pytest.fixture
def setting(db: None) -> TierSetting:
    tiers.ensure_settings("local", {"cpu": 192 * MIB})
    return TierSetting.objects.get()


def change(
    setting: TierSetting, author: User | None = None, *, seen: Wish | None = None, **wished: Any
) -> list[TierChange]:
    now = Wish.of(TierSetting.objects.get(pk=setting.pk))
    wish = replace(now, **wished)
    return tiers.change(setting_id=setting.pk, seen=seen or now, wish=wish, author=author, now=NOW)


@pytest.mark.django_db
def test_an_engines_first_start_creates_a_setting_for_every_tier_in_the_order_given() -> None:
    tiers.ensure_settings("local", {"gpu": 1, "cpu": 2, "disk": 3})
    rows = TierSetting.objects.values_list("engine", "cache_tier", "desired_bytes")
    assert list(rows) == [("local", "gpu", 1), ("local", "cpu", 2), ("local", "disk", 3)]


def test_a_later_start_keeps_what_an_admin_asked_for(setting: TierSetting) -> None:
    change(setting, desired_bytes=5)
    tiers.ensure_settings("local", {"cpu": 192 * MIB, "disk": 7})
    assert list(TierSetting.objects.values_list("cache_tier", "desired_bytes")) == [("cpu", 5), ("disk", 7)]


def test_a_change_stores_the_wish_with_author_and_time(setting: TierSetting, author: User) -> None:
    change(setting, author, desired_bytes=256 * MIB)
    row = TierChange.objects.get()
    assert (row.engine, row.cache_tier, row.action) == ("local", "cpu", "resize")
    assert (row.old_value, row.new_value, row.author, row.at) == ("192 MiB", "256 MiB", author, NOW)
    setting.refresh_from_db()
    assert (setting.desired_bytes, setting.changed_at) == (256 * MIB, NOW)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (100_270_080, 128 * MIB, ("95.62 MiB", "128 MiB")),
        (1024 * MIB, 1024 * MIB + 1, ("1 GiB", "1073741825 B")),
    ],
)
def test_history_is_rounded_for_reading_unless_that_hides_the_change(
    setting: TierSetting, before: int, after: int, words: tuple[str, str]
) -> None:
    TierSetting.objects.update(desired_bytes=before)
    change(setting, desired_bytes=after)
    row = TierChange.objects.get()
    assert (row.old_value, row.new_value) == words


def test_every_thing_that_changed_is_one_row_of_history(setting: TierSetting, author: User) -> None:
    modes: dict[str, Any] = {
        "write_mode": "write_selective",
        "store_after_hits": 3,
        "load": "when_cheaper",
        "tenant_quota": 0.125,
    }
    change(setting, author, desired_bytes=0, **modes)
    assert set(TierChange.objects.values_list("action", "old_value", "new_value")) == {
        ("resize", "192 MiB", "0 B"),
        ("write_mode", "write_back", "write_selective"),
        ("store_after_hits", "at hit 2", "at hit 3"),
        ("load", "always", "when_cheaper"),
        ("tenant_quota", "100 %", "12.5 %"),
    }


@pytest.mark.django_db
def test_a_new_engines_tiers_begin_with_the_share_of_the_environment() -> None:
    with override_settings(TENANT_QUOTA=0.5):
        tiers.ensure_settings("local", {"gpu": 1, "disk": 1, "remote": 1})
    assert dict(TierSetting.objects.values_list("cache_tier", "tenant_quota")) == {
        "gpu": 0.5,
        "disk": 0.5,
        "remote": 0.5,
    }


def test_a_save_that_changes_nothing_writes_nothing(setting: TierSetting, author: User) -> None:
    assert change(setting, author) == []
    assert not TierChange.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_the_engine_is_told_to_reconcile_once_the_change_is_committed(valkey: str) -> None:
    tiers.ensure_settings("local", {"cpu": 1})
    with transaction.atomic():
        change(TierSetting.objects.get(), desired_bytes=2)
        assert take_messages() == []
    assert take_messages() == [{"op": "reconcile"}]


@pytest.mark.django_db(transaction=True)
def test_a_change_that_is_rolled_back_tells_the_engine_nothing(valkey: str) -> None:
    tiers.ensure_settings("local", {"cpu": 1})
    with transaction.atomic():
        change(TierSetting.objects.get(), desired_bytes=2)
        transaction.set_rollback(True)
    assert take_messages() == []
    assert TierSetting.objects.get().desired_bytes == 1


@pytest.mark.django_db(transaction=True)
def test_without_valkey_the_wish_is_stored_all_the_same(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tiers.ensure_settings("local", {"cpu": 1})
    monkeypatch.setattr(valkey_module, "client", lambda: redis.Redis(host="127.0.0.1", port=1))
    change(TierSetting.objects.get(), desired_bytes=2)
    assert TierSetting.objects.get().desired_bytes == 2
    assert "was not told about reconcile" in caplog.text


@pytest.mark.django_db(transaction=True)
def test_messages_that_no_engine_takes_vanish(valkey: str) -> None:
    tiers.ensure_settings("local", {"cpu": 1})
    change(TierSetting.objects.get(), desired_bytes=2)
    assert 0 < valkey_module.client().ttl(valkey_module.control_key("local")) <= tiers.CONTROL_TTL_SECONDS


def test_the_second_of_two_admins_is_refused_and_overwrites_nothing(setting: TierSetting, author: User) -> None:
    before = Wish.of(setting)
    change(setting, author, desired_bytes=256 * MIB)
    with pytest.raises(ChangedMeanwhileError):
        change(setting, seen=before, desired_bytes=64 * MIB)
    setting.refresh_from_db()
    assert setting.desired_bytes == 256 * MIB
    assert TierChange.objects.count() == 1


def test_what_the_engine_made_of_it_is_recorded_without_touching_the_wish(setting: TierSetting) -> None:
    changed_at = setting.changed_at
    tiers.record_applied("local", "cpu", 100, "Only 100 B are free.", NOW)
    setting.refresh_from_db()
    assert (setting.applied_bytes, setting.applied_at, setting.reason) == (100, NOW, "Only 100 B are free.")
    assert (setting.desired_bytes, setting.changed_at) == (192 * MIB, changed_at)


def test_a_new_wish_forgets_why_the_last_one_failed(setting: TierSetting) -> None:
    tiers.record_applied("local", "cpu", 100, "Only 100 B are free.", NOW)
    change(setting, desired_bytes=100)
    setting.refresh_from_db()
    assert setting.reason == ""


@pytest.mark.django_db(transaction=True)
def test_a_clear_is_asked_of_the_engine_and_its_outcome_recorded(valkey: str) -> None:
    tiers.ensure_settings("local", {"disk": 1})
    ada = User.objects.create_user("ada")
    asked = tiers.clear(setting_id=TierSetting.objects.get().pk, author=ada, now=NOW)
    assert take_messages() == [{"op": "clear", "tier": "disk", "change_id": asked.pk}]
    tiers.record_cleared(asked.pk, "120 blocks dropped")
    row = TierChange.objects.get()
    assert (row.action, row.author, row.at, row.new_value) == ("clear", ada, NOW, "120 blocks dropped")


def test_an_outcome_can_only_be_given_to_a_clear(setting: TierSetting) -> None:
    [resize] = change(setting, desired_bytes=1)
    tiers.record_cleared(resize.pk, "nonsense")
    assert TierChange.objects.get().new_value == "1 B"


WISHES = st.builds(
    Wish,
    st.sampled_from([0, 1, 2]),
    st.just("lru"),
    st.sampled_from(["write_back", "write_through"]),
    st.sampled_from([2, 3]),
    st.sampled_from(["always", "when_cheaper"]),
    st.sampled_from([0.3, 1.0]),
)


class ManyAdmins(TestCase):
    """Random admins who opened the page at random times, against one variable and one list."""

    @settings(max_examples=60, deadline=None)
    @given(st.lists(st.tuples(st.integers(0, 3), WISHES, st.booleans()), max_size=12))
    def test_history_always_leads_from_the_first_size_to_the_stored_one(
        self, saves: list[tuple[int, Wish, bool]]
    ) -> None:
        TierSetting.objects.all().delete()
        TierChange.objects.all().delete()
        tiers.ensure_settings("local", {"cpu": 1})
        pk = TierSetting.objects.get().pk
        truth = Wish.of(TierSetting.objects.get())
        seen = dict.fromkeys(range(4), truth)
        sizes = [truth.desired_bytes]
        for admin, wish, reloads in saves:
            if reloads:
                seen[admin] = truth
            if wish != seen[admin] and seen[admin] != truth:
                with pytest.raises(ChangedMeanwhileError):
                    tiers.change(setting_id=pk, seen=seen[admin], wish=wish, author=None, now=NOW)
                continue
            tiers.change(setting_id=pk, seen=seen[admin], wish=wish, author=None, now=NOW)
            if wish != seen[admin]:
                truth = seen[admin] = wish
                sizes += [wish.desired_bytes] if wish.desired_bytes != sizes[-1] else []
        assert Wish.of(TierSetting.objects.get()) == truth
        resizes = TierChange.objects.filter(action="resize").order_by("pk")
        assert [row.new_value for row in resizes] == [f"{size} B" for size in sizes[1:]]
        assert [row.old_value for row in resizes] == [f"{size} B" for size in sizes[:-1]]
