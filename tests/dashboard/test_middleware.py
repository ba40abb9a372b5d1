"""The two middlewares of the asynchronous web process: static files without threads, /v1 past Django's own."""

import re

import httpx
import pytest

from tests.e2e.stack import Stack


@pytest.fixture
def stylesheet(scripted_stack: Stack) -> str:
    """The address of a hashed static file, as the login page names it."""
    page = httpx.get(f"{scripted_stack.base_url}/login/", timeout=20).text
    found = re.search(r'href="(/static/[^"]+\.css)"', page)
    assert found, "the login page has no stylesheet"
    return scripted_stack.base_url + found[1]


def test_a_static_file_is_served_whole_and_may_be_kept_for_ever(stylesheet: str) -> None:
    answer = httpx.get(stylesheet, timeout=20)

    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/css")
    assert "immutable" in answer.headers["Cache-Control"]
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert len(answer.content) > 100


def test_a_head_request_has_no_body_and_a_known_file_is_not_sent_again(stylesheet: str) -> None:
    head = httpx.head(stylesheet, timeout=20)
    seen = httpx.get(stylesheet, headers={"If-Modified-Since": head.headers["Last-Modified"]}, timeout=20)

    assert (head.status_code, head.content) == (200, b"")
    assert (seen.status_code, seen.content) == (304, b"")


def test_a_missing_static_file_is_not_found(scripted_stack: Stack) -> None:
    answer = httpx.get(f"{scripted_stack.base_url}/static/nothing.css", timeout=20)

    assert answer.status_code in (302, 404)


def test_the_api_names_no_cookie_and_forbids_sniffing(scripted_stack: Stack) -> None:
    answer = httpx.get(f"{scripted_stack.base_url}/v1/models", timeout=20)

    assert "Set-Cookie" not in answer.headers
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_a_foreign_host_name_is_refused_by_the_api_too(scripted_stack: Stack) -> None:
    headers = {"Host": "evil.example", "Authorization": f"Bearer {scripted_stack.api_key}"}

    assert httpx.get(f"{scripted_stack.base_url}/v1/models", headers=headers, timeout=20).status_code == 400


def test_requests_are_counted_by_view_and_never_by_path(scripted_stack: Stack) -> None:
    httpx.get(f"{scripted_stack.base_url}/v1/secret-path", timeout=20)
    told = scripted_stack.metrics()

    assert 'tierscope_http_requests_total{method="GET",status="404",view="unknown"}' in told
    assert "secret-path" not in told
