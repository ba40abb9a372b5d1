"""The admin's other pages: API keys, retention, history, what was recorded, and who may see what."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from dashboard.models import ApiKey, RequestLog, Retention, Series, Source, TierChange
from dashboard.services.api_keys import create_api_key, find_api_key

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("valkey")]

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
KEYS = "/admin/dashboard/apikey/"


@pytest.fixture
def request_log(db: None) -> RequestLog:
    return RequestLog.objects.create(
        request_id="r-1",
        engine="local",
        model_name="m",
        received_at=NOW,
        finished_at=NOW,
        prompt_tokens=100,
        hit_cpu_tokens=64,
        computed_tokens=36,
        generated_tokens=5,
        slowest_tier="cpu",
        ttft_seconds=0.25,
        finish_reason="stop",
    )


def test_a_new_key_is_shown_exactly_once_and_stored_as_a_hash_only(admin: Client) -> None:
    response = admin.post(f"{KEYS}add/", {"name": "grafana"})
    [plain] = re.findall(r'value="(ts-[^"]+)"', response.content.decode())
    assert "no-store" in response.headers["Cache-Control"]
    stored = ApiKey.objects.get()
    assert find_api_key(plain) == stored
    assert plain not in (stored.hashed_key, stored.prefix)
    for path in (KEYS, f"{KEYS}{stored.pk}/change/", f"{KEYS}{stored.pk}/history/", "/admin/"):
        assert plain not in admin.get(path).content.decode()
    assert plain not in str(dict(admin.session)) + str(admin.cookies)


def test_a_key_gets_its_tenant_when_it_is_made_and_may_change_it_later(admin: Client) -> None:
    admin.post(f"{KEYS}add/", {"name": "grafana", "tenant": "acme"})
    stored = ApiKey.objects.get()
    assert stored.tenant == "acme"
    admin.post(f"{KEYS}{stored.pk}/change/", {"name": "grafana", "tenant": "", "is_active": "on"})
    stored.refresh_from_db()
    assert stored.tenant == ""


def test_a_tenant_that_is_none_is_refused_in_a_sentence(admin: Client) -> None:
    page = admin.post(f"{KEYS}add/", {"name": "grafana", "tenant": "other"}).content.decode()
    assert "“other” is what pages call a group of requests; choose another name." in page
    assert not ApiKey.objects.exists()


def test_a_reload_of_the_page_that_showed_the_key_makes_no_second_key(admin: Client) -> None:
    admin.post(f"{KEYS}add/", {"name": "grafana"})
    page = admin.post(f"{KEYS}add/", {"name": "grafana"}).content.decode()
    assert "already exists" in page
    assert ApiKey.objects.count() == 1


def test_a_revoked_key_opens_nothing(admin: Client) -> None:
    stored, plain = create_api_key("old")
    page = admin.post(KEYS, {"action": "revoke", "_selected_action": stored.pk}, follow=True).content.decode()
    assert "1 key was revoked" in page
    assert find_api_key(plain) is None


def test_neither_hash_nor_prefix_of_a_key_can_be_edited(admin: Client) -> None:
    stored, plain = create_api_key("a")
    admin.post(f"{KEYS}{stored.pk}/change/", {"name": "b", "is_active": "on", "hashed_key": "0", "prefix": "x"})
    stored.refresh_from_db()
    assert stored.name == "b"
    assert find_api_key(plain) == stored


def test_staff_who_may_only_look_at_keys_can_not_revoke_them(client: Client) -> None:
    stored, plain = create_api_key("a")
    looker = User.objects.create_user("grace", is_staff=True)
    looker.user_permissions.add(Permission.objects.get(codename="view_apikey"))
    client.force_login(looker)
    client.post(KEYS, {"action": "revoke", "_selected_action": stored.pk})
    assert find_api_key(plain) == stored
    assert client.post(f"{KEYS}add/", {"name": "mine"}).status_code == 403


def retention_form(**typed: int) -> dict[str, int]:
    names = [field.name for field in Retention._meta.fields if field.name != "id"]
    return {**{name: getattr(Retention(), name) for name in names}, **typed}


def test_retention_is_one_row_whose_list_is_its_form(admin: Client) -> None:
    response = admin.get("/admin/dashboard/retention/", follow=True)
    assert response.redirect_chain[-1][0] == "/admin/dashboard/retention/1/change/"
    admin.get("/admin/dashboard/retention/")
    assert Retention.objects.count() == 1
    assert admin.get("/admin/dashboard/retention/add/").status_code == 403
    assert admin.post("/admin/dashboard/retention/1/delete/", {"post": "yes"}).status_code == 403


def test_the_form_of_retention_says_in_words_what_each_number_is(admin: Client) -> None:
    page = admin.get("/admin/dashboard/retention/", follow=True).content.decode()
    assert "10-second buckets are kept for (hours):" in page
    assert "At most so many requests are kept:" in page
    assert "Ten seconds hours" not in page


def test_the_history_is_filtered_by_what_our_engines_have_in_words(admin: Client) -> None:
    TierChange.objects.create(engine="local", cache_tier="cpu", action="write_mode", at=NOW)
    page = admin.get("/admin/dashboard/tierchange/").content.decode()
    assert "write mode</a>" in page
    assert ">write_mode<" not in page
    assert "Unattributed" not in page


def test_retention_that_makes_sense_is_saved(admin: Client) -> None:
    Retention.objects.create(pk=1)
    admin.post("/admin/dashboard/retention/1/change/", retention_form(minutes_days=30))
    assert Retention.objects.get().minutes_days == 30


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ({"ten_seconds_hours": 400}, "1 min buckets must be kept at least as long as 10 s buckets"),
        ({"minutes_days": 500}, "1 h buckets must be kept at least as long as 1 min buckets"),
        ({"hours_days": 4000}, "1 d buckets must be kept at least as long as 1 h buckets"),
        ({"requests_rows": 1}, "greater than or equal to 1000"),
    ],
)
def test_retention_that_would_tear_a_hole_is_refused_in_a_sentence(
    admin: Client, typed: dict[str, int], sentence: str
) -> None:
    Retention.objects.create(pk=1)
    page = admin.post("/admin/dashboard/retention/1/change/", retention_form(**typed)).content.decode()
    assert sentence in page
    assert Retention.objects.get().minutes_days == Retention().minutes_days


def test_the_request_log_shows_tokens_by_tier_and_can_be_filtered(admin: Client, request_log: RequestLog) -> None:
    page = admin.get("/admin/dashboard/requestlog/?slowest_tier=cpu").content.decode()
    assert all(cell in page for cell in ("r-1", ">64<", ">36<", "250 ms"))
    assert "r-1" not in admin.get("/admin/dashboard/requestlog/?slowest_tier=disk").content.decode()
    assert "r-1" in admin.get("/admin/dashboard/requestlog/?q=r-1").content.decode()


def test_the_list_of_requests_tells_times_as_pages_do_and_long_ids_by_their_end(
    admin: Client, request_log: RequestLog
) -> None:
    RequestLog.objects.update(ttft_seconds=1.501, request_id=f"chatcmpl-{'0' * 24}1234abcd", prompt_tokens=1100)
    page = admin.get("/admin/dashboard/requestlog/").content.decode()
    assert all(cell in page for cell in (">1.5 s<", f'title="chatcmpl-{"0" * 24}1234abcd">…1234abcd<', ">1,100<"))


@pytest.mark.parametrize("model", ["requestlog", "tierchange", "series"])
def test_what_was_recorded_is_read_only_even_for_a_superuser(
    admin: Client, request_log: RequestLog, model: str
) -> None:
    source = Source.objects.create(name="s")
    Series.objects.create(pk=request_log.pk, source=source, engine="local", model_name="m", metric="prompt_tokens")
    TierChange.objects.create(pk=request_log.pk, engine="local", cache_tier="cpu", action="clear", at=NOW)
    base = f"/admin/dashboard/{model}/"
    assert admin.get(base).status_code == 200
    assert admin.get(f"{base}{request_log.pk}/change/").status_code == 200
    assert admin.get(f"{base}add/").status_code == 403
    assert admin.post(f"{base}{request_log.pk}/change/", {"engine": "x"}).status_code == 403
    assert admin.post(f"{base}{request_log.pk}/delete/", {"post": "yes"}).status_code == 403
    admin.post(base, {"action": "delete_selected", "_selected_action": request_log.pk, "post": "yes"})
    counts = [kind.objects.count() for kind in (RequestLog, Series, TierChange)]
    assert counts == [1, 1, 1]


@pytest.mark.parametrize("model", ["bucket", "counterstate", "enginerun"])
def test_what_sums_are_made_of_is_not_in_the_admin_at_all(admin: Client, model: str) -> None:
    assert admin.get(f"/admin/dashboard/{model}/").status_code == 404


def test_history_of_a_deleted_user_stays(admin: Client) -> None:
    grace = User.objects.create_user("grace")
    TierChange.objects.create(
        engine="local", cache_tier="cpu", action="resize", old_value="1 GiB", new_value="2 GiB", author=grace, at=NOW
    )
    grace.delete()
    page = admin.get("/admin/dashboard/tierchange/").content.decode()
    assert "deleted user" in page
    assert "2 GiB" in page


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ("128 MiB", "128 B", "<b>▼ ÷ 1,048,576</b>"),
        ("128 B", "128 MiB", "<b>▲ × 1,048,576</b>"),
        ("1 GiB", "0 B", "<b>▼ switched off</b>"),
        ("0 B", "1 GiB", "<b>▲ switched on</b>"),
        ("1 GiB", "102.4 MiB", "<b>▼ ÷ 10</b>"),
        ("96 MiB", "192 MiB", ">× 2<"),
        ("192 MiB", "128 MiB", ">÷ 1.5<"),
    ],
)
def test_the_history_says_by_how_much_a_size_changed_and_stresses_what_cannot_be_meant(
    admin: Client, before: str, after: str, shown: str
) -> None:
    TierChange.objects.create(
        engine="local", cache_tier="cpu", action="resize", old_value=before, new_value=after, at=NOW
    )
    page = admin.get("/admin/dashboard/tierchange/").content.decode()
    assert all(word in page for word in (before, after, shown))


def test_the_history_writes_settings_as_people_do(admin: Client) -> None:
    for action, old, new in (("policy", "lru", "s3fifo"), ("write_mode", "write_back", "write_through")):
        TierChange.objects.create(engine="local", cache_tier="cpu", action=action, old_value=old, new_value=new, at=NOW)
    page = admin.get("/admin/dashboard/tierchange/").content.decode()
    assert all(word in page for word in (">LRU<", ">S3-FIFO<", ">write back<", ">write through<", ">write mode<"))


def test_every_list_and_form_of_the_admin_opens(admin: Client, request_log: RequestLog) -> None:
    page = admin.get("/admin/").content.decode()
    lists = sorted(set(re.findall(r'href="(/admin/(?:dashboard|auth)/[a-z]+/)"', page)))
    assert len(lists) >= 9
    for path in lists:
        assert admin.get(path, follow=True).status_code == 200, path
    for path in re.findall(r'href="(/admin/(?:dashboard|auth)/[a-z]+/add/)"', page):
        assert admin.get(path).status_code == 200, path


def test_the_admin_is_part_of_the_product(admin: Client) -> None:
    page = admin.get("/admin/").content.decode()
    assert "Tierscope admin" in page
    assert '<a href="/">Overview</a>' in page
    assert "Django administration" not in page


@pytest.mark.parametrize("model", ["source", "apikey", "retention", "requestlog", "series", "tierchange"])
def test_staff_see_only_what_they_were_given(client: Client, model: str) -> None:
    client.force_login(User.objects.create_user("grace", is_staff=True))
    assert client.get(f"/admin/dashboard/{model}/").status_code == 403


def test_the_admin_needs_a_login(client: Client) -> None:
    response: Any = client.get("/admin/dashboard/requestlog/")
    assert response.headers["Location"] == "/login/?next=/admin/dashboard/requestlog/"
