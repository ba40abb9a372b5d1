"""The pages answer, ask for a login, name what is there, and load nothing from elsewhere."""

import re
import time
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client

from dashboard.models import RequestLog
from dashboard.services.api_keys import create_api_key
from tests.dashboard.seeded import MODEL, lively, seed_requests

pytestmark = pytest.mark.django_db
PAGES = ("/", "/chat/", "/requests/", "/what-if/", "/fleet/", "/models/", "/compare/", "/alerts/")
ROOT = Path(__file__).parents[2]


@pytest.fixture
def browser(client: Client) -> Client:
    client.force_login(User.objects.create_user("ada"))
    return client


def text(browser: Client, address: str) -> str:
    response = browser.get(address)
    assert response.status_code == 200
    return response.content.decode()


@pytest.mark.parametrize("page", PAGES)
def test_a_page_asks_a_stranger_to_log_in(client: Client, page: str) -> None:
    response = client.get(page)
    assert (response.status_code, response["Location"]) == (302, f"/login/?next={page}")


@pytest.mark.parametrize("page", [*PAGES, "/login/"])
def test_a_page_names_no_other_host_and_has_no_inline_script(browser: Client, page: str) -> None:
    html = text(browser, page)
    assert not re.findall(r"""(?:src|href)=["'](?:https?:)?//""", html)
    assert not re.findall(r"<script(?![^>]*\bsrc=)[^>]*>", html)
    assert not re.findall(r"\son[a-z]+=", html)


def test_the_login_page_says_where_the_first_password_is(client: Client) -> None:
    html = text(client, "/login/")
    assert "admin-password" in html
    assert "TIERSCOPE_HOME" in html


def test_a_wrong_password_is_said_in_a_sentence(client: Client) -> None:
    response = client.post("/login/", {"username": "ada", "password": "wrong"})
    assert "The user name or the password is wrong" in response.content.decode()


def test_the_overview_offers_every_engine_and_model_that_was_seen(browser: Client) -> None:
    lively(time.time(), seconds=60).store(time.time())
    html = text(browser, "/")
    assert "<option>local</option>" in html
    assert f"<option>{MODEL}</option>" in html


def test_the_overview_tells_tenants_apart_once_there_is_any(browser: Client) -> None:
    assert 'id="tenants"' not in text(browser, "/")
    create_api_key("a", "acme")
    assert 'data-chart="tenant-hit-rate"' in text(browser, "/")


def test_a_wrong_period_shows_the_default_and_says_so(browser: Client) -> None:
    seed_requests(20)
    html = text(browser, "/?range=2h")
    assert "range is “2h”" in html
    assert 'data-range="15m" aria-current="true"' in html


def test_a_newcomer_sees_the_first_minutes_large(browser: Client) -> None:
    seed_requests(2)
    assert 'data-range="5m" aria-current="true"' in text(browser, "/")
    seed_requests(10, seed=4)
    assert 'data-range="15m" aria-current="true"' in text(browser, "/")


def test_only_staff_see_the_way_to_the_admin_and_the_chat(browser: Client) -> None:
    assert "/admin/" not in text(browser, "/")
    User.objects.filter(username="ada").update(is_staff=True)
    assert "/admin/" in text(browser, "/")


def test_the_request_log_shows_a_bar_of_the_prompts_origins(browser: Client) -> None:
    seed_requests(3)
    newest = RequestLog.objects.first()
    assert newest is not None
    html = text(browser, "/requests/")
    assert newest.request_id in html
    assert f"{newest.hit_gpu_tokens:,} gpu" in html
    assert f"{newest.computed_tokens:,} computed" in html


def test_the_request_log_has_pages_that_keep_the_filter(browser: Client) -> None:
    seed_requests(60)
    html = text(browser, "/requests/?engine=local")
    assert "?engine=local&amp;page=2" in html
    assert "Newer" in text(browser, "/requests/?engine=local&page=2")


@pytest.mark.parametrize("page", ["3", "9999", "999999999"])
def test_a_page_behind_the_last_is_the_last_and_says_so(browser: Client, page: str) -> None:
    seed_requests(60)
    html = text(browser, f"/requests/?page={page}")
    assert f"There is no page {page}; this is the last." in html
    assert "Page 2" in html
    assert html.count("<time ") == 10
    assert "No request has been answered yet" not in html


def test_a_page_behind_the_last_with_filters_that_fit_nothing_says_so(browser: Client) -> None:
    seed_requests(60)
    assert "No request fits these filters." in text(browser, "/requests/?page=9999&engine=other")


@pytest.mark.parametrize("page", ["", "0", "-1", "x", "1"])
def test_no_page_is_the_first(browser: Client, page: str) -> None:
    seed_requests(60)
    html = text(browser, f"/requests/?page={page}")
    assert "Page 1" in html
    assert "There is no page" not in html


def test_times_of_requests_are_the_year_first_in_the_zone_of_whoever_looks(browser: Client) -> None:
    seed_requests(1, now=1_783_029_845.0)
    browser.cookies["tierscope_zone"] = "Asia/Kolkata"
    html = text(browser, "/requests/")
    assert ">2026-07-03 03:34:05</time>" in html
    assert html.count("Asia/Kolkata") == 1


def test_the_request_log_can_be_narrowed_to_the_slowest_tier(browser: Client) -> None:
    seed_requests(40)
    found = text(browser, "/requests/?tier=disk")
    of_disk = RequestLog.objects.filter(slowest_tier="disk")
    assert all((logged.request_id in found) == (logged in of_disk) for logged in RequestLog.objects.all())


def test_the_request_log_shows_tenants_and_can_be_narrowed_to_one_once_there_is_any(browser: Client) -> None:
    seed_requests(3)
    assert "Tenant" not in text(browser, "/requests/")
    create_api_key("a", "acme")
    first = RequestLog.objects.order_by("pk")[0]
    RequestLog.objects.filter(pk=first.pk).update(tenant="acme")
    found = text(browser, "/requests/?tenant=acme")
    assert "<option selected>acme</option>" in found
    assert '<td role="cell" class="muted" data-label="Tenant">acme</td>' in found
    assert found.count("<time ") == 1
    assert text(browser, "/requests/?tenant=common").count("<time ") == 2


@pytest.mark.parametrize("query", ["page=x", "page=-1", "page=99999999999", "page=0", "engine=" + "x" * 999])
def test_a_strange_page_of_the_request_log_is_answered_all_the_same(browser: Client, query: str) -> None:
    assert "No request" in text(browser, f"/requests/?{query}")


def test_an_error_in_a_request_is_shown_as_text(browser: Client) -> None:
    seed_requests(1)
    RequestLog.objects.update(error="<b>worker</b> was lost")
    assert "&lt;b&gt;worker&lt;/b&gt; was lost" in text(browser, "/requests/")


def test_an_address_that_leads_nowhere_has_a_page_in_the_same_look(browser: Client) -> None:
    response = browser.get("/nowhere/")
    assert response.status_code == 404
    assert "There is no such page" in response.content.decode()


def test_the_vendored_plotly_has_its_licence_and_version_beside_it() -> None:
    readme = (ROOT / "static/vendor/README.md").read_text()
    (script,) = (ROOT / "static/vendor").glob("*.js")
    assert script.name in readme
    assert re.search(r"plotly\.js.*v4\.1\.1", script.read_text()[:200])
    assert script.name in (ROOT / "templates/charts_page.html").read_text()
    assert (ROOT / "static/vendor/plotly-LICENSE.txt").read_text().startswith("MIT License")


def imported(script: Path) -> set[Path]:
    """Itself and all that it imports, from wherever."""
    found = {script}
    for name in re.findall(r'from "(\.[^"]+)"', script.read_text()):
        found |= imported((script.parent / name).resolve())
    return found


_SCRIPTS = [
    ("/", "overview"),
    ("/tiers/", "tiers"),
    ("/what-if/", "what-if"),
    ("/fleet/", "fleet"),
    ("/models/", "models"),
    ("/engines/local/", "engine"),
    ("/compare/", "compare"),
    ("/alerts/", "alerts"),
]


@pytest.mark.parametrize(("page", "folder"), _SCRIPTS)
def test_a_page_names_every_module_that_its_script_imports(browser: Client, page: str, folder: str) -> None:
    lively(time.time(), seconds=60).store(time.time())
    html = text(browser, page)
    names = {path.relative_to(ROOT / "static").as_posix() for path in imported(ROOT / f"static/js/{folder}/main.js")}
    assert {name for name in names if f"/static/{name}" not in html} == set()
