"""Sources in the admin: what may be typed, how they are doing, and reading one now."""

from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from dashboard import valkey as valkey_module
from dashboard.models import Series, Source
from dashboard.selectors.source_states import state_of
from dashboard.services.sources import ensure_embedded

pytestmark = pytest.mark.django_db

LIST = "/admin/dashboard/source/"
VLLM = """# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{engine="0",model_name="m"} 100.0
# TYPE vllm:prompt_tokens_cached_by_source_total counter
vllm:prompt_tokens_cached_by_source_total{engine="0",model_name="m",source="device"} 48.0
vllm:prompt_tokens_cached_by_source_total{engine="0",model_name="m",source="host"} 16.0
"""


@pytest.fixture
def admin(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("ada"))
    return client


def add(client: Client, **typed: str) -> str:
    form = {"name": "prod", "kind": "auto", "url": "http://gpu-7:8000/metrics", "interval_seconds": "10", **typed}
    response = client.post(f"{LIST}add/", {**form, "is_enabled": "on"}, follow=True)
    assert response.status_code == 200
    return response.content.decode()


def test_another_engine_is_watched_once_its_address_is_typed(admin: Client) -> None:
    add(admin)
    source = Source.objects.get()
    assert (source.name, source.kind, source.url) == ("prod", "auto", "http://gpu-7:8000/metrics")
    assert state_of(source, timezone.now()) == "never"


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ({"url": ""}, "Enter the metrics address, like http://gpu-7:8000/metrics."),
        ({"url": "ftp://gpu-7/metrics"}, "Enter the metrics address"),
        ({"url": "http://me:secret@gpu-7/metrics"}, "Leave the user name and password out of the address"),
        ({"kind": "embedded"}, "The embedded engines are read from Valkey; leave the URL empty."),
        ({"interval_seconds": "0"}, "greater than or equal to 1"),
        ({"name": "a/b"}, "Enter a valid value."),
    ],
)
def test_what_cannot_be_watched_is_refused_in_a_sentence(admin: Client, typed: dict[str, str], sentence: str) -> None:
    assert sentence in add(admin, **typed)
    assert not Source.objects.exists()


@pytest.mark.parametrize(
    ("told", "state"),
    [
        ({}, "never"),
        ({"last_ok_at": 29}, "up"),
        ({"last_ok_at": 31}, "stale"),
        ({"last_ok_at": 1, "is_enabled": False}, "off"),
    ],
)
def test_how_a_source_is_doing_is_one_word(told: dict[str, Any], state: str) -> None:
    now = timezone.now()
    age = told.get("last_ok_at")
    source = Source(
        interval_seconds=10,
        is_enabled=told.get("is_enabled", True),
        last_ok_at=None if age is None else now - timedelta(seconds=age),
    )
    assert state_of(source, now) == state


def test_the_list_shows_state_duration_samples_and_the_last_error_in_words(admin: Client) -> None:
    Source.objects.create(
        name="prod",
        url="http://gpu-7/metrics",
        last_ok_at=timezone.now() - timedelta(hours=1),
        last_duration_seconds=0.0123,
        last_num_samples=42,
        last_error="gpu-7 did not answer within 5 s.",
    )
    page = admin.get(LIST).content.decode()
    assert all(word in page for word in ("stale", "12 ms", ">42<", "gpu-7 did not answer within 5 s."))


@pytest.mark.parametrize("in_bulk", [False, True])
def test_a_source_that_was_read_can_be_deleted_with_its_series(admin: Client, in_bulk: bool) -> None:
    source = Source.objects.create(name="old", url="http://127.0.0.1:9/metrics")
    Series.objects.create(source=source, engine="old/0", model_name="m", metric=Series.Metric.PROMPT_TOKENS)
    if in_bulk:
        chosen = {"action": "delete_selected", "_selected_action": [source.pk], "post": "yes"}
        admin.post(LIST, chosen)
    else:
        admin.post(f"{LIST}{source.pk}/delete/", {"post": "yes"})
    assert not Source.objects.filter(name="old").exists()
    assert not Series.objects.exists()


def test_the_embedded_source_cannot_be_deleted(admin: Client) -> None:
    source = ensure_embedded()
    assert admin.post(f"{LIST}{source.pk}/delete/", {"post": "yes"}).status_code == 403
    data = {"action": "delete_selected", "_selected_action": source.pk, "post": "yes"}
    admin.post(LIST, data, follow=True)
    assert Source.objects.filter(pk=source.pk).exists()


@pytest.fixture
def vllm() -> Any:
    """A real HTTP server that says what vLLM says."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/metrics" else 404)
            self.end_headers()
            self.wfile.write(VLLM.encode())

        def log_message(self, *args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def trial(client: Client, source: Source) -> str:
    response = client.post(f"{LIST}{source.pk}/trial/")
    assert response.status_code == 200
    return response.content.decode()


def test_reading_a_source_now_shows_what_is_made_of_it_and_records_nothing(
    admin: Client, valkey: str, vllm: str
) -> None:
    source = Source.objects.create(name="prod", url=f"{vllm}/metrics")
    page = trial(admin, source)
    assert "Read as <b>vLLM 0.32 or newer</b>" in page
    assert all(cell in page for cell in ("<td>100</td>", "<td>48</td>", "<td>16</td>"))
    source.refresh_from_db()
    assert source.last_scraped_at is None
    assert not Series.objects.exists()


def test_a_source_that_does_not_answer_says_so_in_a_sentence(admin: Client, valkey: str, vllm: str) -> None:
    source = Source.objects.create(name="prod", url=f"{vllm}/nothing")
    assert "127.0.0.1 answered 404; expected 200 and a metrics text." in trial(admin, source)


def test_reading_the_embedded_engines_without_valkey_says_so(admin: Client, settings: Any) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    valkey_module.forget_clients()
    try:
        assert "Valkey cannot be reached" in trial(admin, ensure_embedded())
    finally:
        valkey_module.forget_clients()


def test_reading_a_source_needs_a_post_and_the_right_to_change_it(admin: Client, client: Client) -> None:
    source = Source.objects.create(name="prod", url="http://127.0.0.1:1/metrics")
    assert admin.get(f"{LIST}{source.pk}/trial/").status_code == 403
    client.force_login(User.objects.create_user("grace", is_staff=True))
    assert client.post(f"{LIST}{source.pk}/trial/").status_code == 403
