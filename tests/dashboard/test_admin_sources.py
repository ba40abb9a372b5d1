"""Sources in the admin: what may be typed, how they are doing, and reading one now."""

import re
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.utils import timezone

from dashboard import tasks
from dashboard import valkey as valkey_module
from dashboard.models import Discovery, Series, Source
from dashboard.selectors.source_states import describe, state_of
from dashboard.services.recording import due_source_ids
from dashboard.services.sources import ensure_embedded, target_of
from tests.dashboard.serving import self_signed

pytestmark = pytest.mark.django_db

LIST = "/admin/dashboard/source/"
VLLM = """# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{engine="0",model_name="m"} 100.0
# TYPE vllm:prompt_tokens_cached_by_source_total counter
vllm:prompt_tokens_cached_by_source_total{engine="0",model_name="m",source="device"} 48.0
vllm:prompt_tokens_cached_by_source_total{engine="0",model_name="m",source="host"} 16.0
"""


def add(client: Client, **typed: str) -> str:
    form = {"name": "prod", "kind": "auto", "url": "http://gpu-7:8000/metrics", "interval_seconds": "10", **typed}
    response = client.post(f"{LIST}add/", {**form, "is_enabled": "on"}, follow=True)
    assert response.status_code == 200
    return response.content.decode()


def test_another_engine_is_watched_once_its_address_is_typed(admin: Client) -> None:
    add(admin)
    source = Source.objects.get()
    assert (source.name, source.kind, source.url) == ("prod", "auto", "http://gpu-7:8000/metrics")
    assert state_of(source, timezone.now()) == "new"


def test_what_computing_and_loading_take_can_be_typed_and_a_wrong_speed_is_said(admin: Client) -> None:
    assert "“fast” is no speed; expected tokens a second" in add(admin, typed_prefill="fast")
    assert "expected GiB a second from cpu, disk or remote" in add(admin, typed_loads="tape: 3")
    assert not Source.objects.exists()
    add(admin, typed_prefill="0: 15000, 8192: 9000", typed_loads="cpu: 20")
    assert Source.objects.get().typed_loads == "cpu: 20"


def test_a_second_source_of_a_name_is_refused_in_a_sentence(admin: Client) -> None:
    add(admin)
    assert "A source of this name already exists; choose another name." in add(admin)


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ({"url": ""}, "Enter an address, like http://gpu-7:8000/metrics."),
        ({"url": "ftp://gpu-7/metrics"}, "Enter an address"),
        ({"url": "http://me:secret@gpu-7/metrics"}, "Leave the user name and password out of the address"),
        ({"kind": "embedded"}, "Select a valid choice. embedded is not one of the available choices."),
        ({"kind": "embedded", "url": ""}, "Select a valid choice. embedded is not one of the available choices."),
        ({"interval_seconds": "0"}, "greater than or equal to 1"),
        ({"name": "a/b"}, "A name begins with a letter or digit"),
    ],
)
def test_what_cannot_be_watched_is_refused_in_a_sentence(admin: Client, typed: dict[str, str], sentence: str) -> None:
    assert sentence in add(admin, **typed)
    assert not Source.objects.exists()


REFUSED = "gpu-7 answered 403; expected 200 and a metrics text."


@pytest.mark.parametrize(
    ("ok", "tried", "told", "state", "sentence"),
    [
        (None, None, {}, "new", "Not tried yet: the worker reads it within seconds."),
        (29, 29, {}, "up", "Last read 29 seconds ago."),
        (29, 1, {"last_error": REFUSED}, "up", "Last read 29 seconds ago."),
        (31, 1, {"last_error": REFUSED}, "failing", f"{REFUSED} Last read 31 seconds ago."),
        (None, 3, {"last_error": REFUSED}, "failing", f"{REFUSED} Never read well."),
        (None, 3, {"last_error": "'hello'"}, "failing", "'hello'. Never read well."),
        (None, 3, {}, "failing", "It cannot be read. Never read well."),
        (
            7200,
            7200,
            {},
            "stale",
            "Last read 2 hours ago, not tried since: is the worker running, and is there room on the database's disk?",
        ),
        (1, 1, {"is_enabled": False}, "off", "Switched off; last read 1 second ago."),
        (None, None, {"is_enabled": False}, "off", "Switched off; never read well."),
    ],
)
def test_how_a_source_is_doing_is_one_word_with_its_reason_and_when(
    ok: int | None, tried: int | None, told: dict[str, Any], state: str, sentence: str
) -> None:
    now = timezone.now()
    last_ok, last_tried = (None if age is None else now - timedelta(seconds=age) for age in (ok, tried))
    source = Source(interval_seconds=10, last_ok_at=last_ok, last_scraped_at=last_tried, **told)
    assert (state_of(source, now), describe(source, now)) == (state, sentence)


def test_list_and_page_show_a_source_in_words_with_no_raw_times_and_no_none(admin: Client) -> None:
    now = timezone.now().replace(2026, 1, 2, 15, 4, 5)
    read = Source.objects.create(
        name="prod",
        url="http://gpu-7/metrics",
        last_ok_at=now,
        last_scraped_at=now,
        last_duration_seconds=0.0123,
        last_num_samples=4200,
    )
    never = Source.objects.create(name="new", url="http://gpu-8/metrics")
    page = admin.get(LIST).content.decode()
    assert all(
        word in page
        for word in ("stale", "12.3 ms", ">4,200<", "is the worker running, and is there room", "2026-01-02 15:04:05")
    )
    for source in (read, never):
        page = admin.get(f"{LIST}{source.pk}/change/").content.decode()
        assert not re.search(r"None|\+00:00|[ap]\.m\.", page)
    assert page.count('<div class="readonly">never</div>') == 2


def test_the_embedded_source_has_a_kind_and_an_address_that_nobody_changes(admin: Client) -> None:
    source = ensure_embedded()
    form = {"name": "ours", "kind": "vllm", "url": "http://gpu-7/metrics", "interval_seconds": "7", "is_enabled": "on"}
    admin.post(f"{LIST}{source.pk}/change/", form)
    source.refresh_from_db()
    assert (source.name, source.kind, source.url, source.interval_seconds) == ("ours", "embedded", "", 7)


@pytest.mark.django_db(transaction=True)
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


@pytest.mark.django_db(transaction=True)
def test_a_source_is_removed_after_the_page_s_own_transaction(admin: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within it every writer of a total would wait until years of buckets are gone."""
    held: list[bool] = []
    held_too = lambda sources, **told: held.append(connection.in_atomic_block)  # noqa: E731
    monkeypatch.setattr("dashboard.admin.sources.remove_sources", held_too)
    source = Source.objects.create(name="old", url="http://127.0.0.1:9/metrics")
    admin.post(f"{LIST}{source.pk}/delete/", {"post": "yes"})
    assert held == [False]


@pytest.mark.django_db(transaction=True)
def test_what_is_left_of_a_large_removal_goes_with_the_worker_and_no_list_shows_it(
    admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashboard.admin.sources._REMOVAL_SECONDS", 0)
    source = Source.objects.create(name="old", url="http://127.0.0.1:9/metrics")
    Series.objects.create(source=source, engine="old/0", model_name="m", metric=Series.Metric.PROMPT_TOKENS)
    admin.post(LIST, {"action": "delete_selected", "_selected_action": [source.pk], "post": "yes"})
    source.refresh_from_db()
    assert describe(source, timezone.now()) == "It is being removed, with its numbers."
    assert due_source_ids(timezone.now()) == []
    assert ">old<" not in admin.get(LIST).content.decode()
    assert tasks.remove_due() == 1
    assert not Source.objects.filter(name="old").exists()


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


def test_a_source_is_tried_before_it_is_saved(admin: Client, valkey: str, vllm: str) -> None:
    assert 'formaction="/admin/dashboard/source/try/"' in admin.get(f"{LIST}add/").content.decode()
    typed = {"kind": "auto", "url": f"{vllm}/metrics", "interval_seconds": "10"}
    page = admin.post(f"{LIST}try/", typed).content.decode()
    assert "Read as <b>vLLM 0.32 or newer</b>" in page
    assert "Enter an address" in admin.post(f"{LIST}try/", {**typed, "url": "gpu-7"}).content.decode()
    assert "Connection refused" in admin.post(f"{LIST}try/", {**typed, "url": "http://127.0.0.1:1/"}).content.decode()
    assert not Source.objects.exists()


def test_trying_a_source_before_it_is_saved_needs_a_post_and_the_right_to_add_one(admin: Client) -> None:
    assert admin.get(f"{LIST}try/").status_code == 403
    admin.force_login(User.objects.create_user("grace", is_staff=True))
    assert admin.post(f"{LIST}try/", {"kind": "auto"}).status_code == 403


def test_a_source_that_does_not_answer_says_so_in_a_sentence(admin: Client, valkey: str, vllm: str) -> None:
    source = Source.objects.create(name="prod", url=f"{vllm}/nothing")
    assert "127.0.0.1 answered 404; expected 200 and a text." in trial(admin, source)


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


class TestSecrets:
    URL = "http://127.0.0.1:1/metrics"

    def typed(self, **told: str) -> dict[str, str]:
        return {"name": "prod", "kind": "auto", "url": self.URL, "interval_seconds": "10", "is_enabled": "on", **told}

    def stored(self) -> Source:
        return Source.objects.create(name="prod", url=self.URL, token="secret-token", headers="X-Org: secret-org")

    def test_a_token_and_headers_are_kept_and_never_shown_again(self, admin: Client) -> None:
        admin.post(f"{LIST}add/", self.typed(typed_token=" secret-token ", typed_headers="X-Org: secret-org"))
        source = Source.objects.get()
        assert (source.token, source.headers) == ("secret-token", "X-Org: secret-org")
        for path in (LIST, f"{LIST}{source.pk}/change/", f"{LIST}{source.pk}/history/"):
            assert "secret" not in admin.get(path).content.decode()

    def test_saving_with_empty_fields_keeps_them_and_forgetting_removes_them(self, admin: Client) -> None:
        source = self.stored()
        admin.post(f"{LIST}{source.pk}/change/", self.typed(interval_seconds="20"))
        source.refresh_from_db()
        assert (source.token, source.headers, source.interval_seconds) == ("secret-token", "X-Org: secret-org", 20)
        admin.post(f"{LIST}{source.pk}/change/", self.typed(forget="on"))
        source.refresh_from_db()
        assert (source.token, source.headers) == ("", "")

    def test_a_stored_token_never_goes_to_another_server(self, admin: Client) -> None:
        source = self.stored()
        other = "http://127.0.0.1:2/metrics"
        page = admin.post(f"{LIST}{source.pk}/change/", self.typed(url=other)).content.decode()
        assert "The server changed: type its token" in page
        source.refresh_from_db()
        assert source.url == self.URL
        page = admin.post(f"{LIST}{source.pk}/change/", self.typed(url=other, typed_token="new")).content.decode()
        assert "The server changed" in page, "the stored headers would go along with the new token"
        admin.post(f"{LIST}{source.pk}/change/", self.typed(url=other, typed_token="new", forget="on"))
        source.refresh_from_db()
        assert (source.url, source.token, source.headers) == (other, "new", "")

    def test_the_address_of_a_listed_engine_is_its_list_s(self, admin: Client) -> None:
        """The list's token is sent there."""
        fleet = Discovery.objects.create(name="fleet", location="/etc/targets/*.json", token="secret-token")
        source = Source.objects.create(name="prod", url=self.URL, discovery=fleet)
        page = admin.post(f"{LIST}{source.pk}/change/", self.typed(url="http://127.0.0.1:2/metrics")).content.decode()
        assert "Its address comes from the discovery “fleet”: change it there." in page
        source.refresh_from_db()
        assert source.url == self.URL
        admin.post(f"{LIST}{source.pk}/change/", self.typed(interval_seconds="20"))
        source.refresh_from_db()
        assert source.interval_seconds == 20

    @pytest.mark.parametrize(
        ("told", "sentence"),
        [
            ({"typed_headers": "nonsense"}, "Line 1 is no header"),
            ({"typed_token": "tökén"}, "printable ASCII characters only"),
            ({"tls_ca": "my certificate"}, "This is no certificate; expected PEM"),
            ({"tls_cert": "my certificate", "typed_key": "key"}, "cannot be used together; expected both as PEM"),
            ({"tls_server_name": "not a name"}, "This is no name of a server"),
        ],
    )
    def test_what_cannot_be_sent_or_trusted_is_refused(
        self, admin: Client, told: dict[str, str], sentence: str
    ) -> None:
        assert sentence in admin.post(f"{LIST}add/", self.typed(**told)).content.decode()
        assert not Source.objects.exists()

    def test_a_key_is_kept_with_its_certificate_and_never_shown_again(self, admin: Client, tmp_path: Path) -> None:
        pem = self_signed(tmp_path, "DNS:tierscope")
        key, cert = pem.with_suffix(".key").read_text(), pem.read_text().partition("-----BEGIN PRIVATE")[0]
        assert "belongs into the field for it" in admin.post(f"{LIST}add/", self.typed(tls_cert=key)).content.decode()
        page = admin.post(f"{LIST}add/", self.typed(tls_cert=cert)).content.decode()
        assert "The certificate and its key cannot be used together" in page
        admin.post(f"{LIST}add/", self.typed(tls_cert=cert, typed_key=key, tls_server_name="gpu-7.example"))
        source = Source.objects.get()
        tls = target_of(source).tls
        assert (tls.cert.strip(), tls.key.strip(), tls.server_name) == (cert.strip(), key.strip(), "gpu-7.example")
        for path in (LIST, f"{LIST}{source.pk}/change/"):
            assert "PRIVATE" not in admin.get(path).content.decode()
        admin.post(f"{LIST}{source.pk}/change/", self.typed(tls_cert=cert, interval_seconds="20"))
        source.refresh_from_db()
        assert (source.tls_key.strip(), source.interval_seconds) == (key.strip(), 20)
        admin.post(f"{LIST}{source.pk}/change/", self.typed(forget="on"))
        source.refresh_from_db()
        assert (source.tls_cert, source.tls_key) == ("", "")

    @pytest.mark.parametrize(("scheme", "is_told"), [("https", True), ("http", False)])
    def test_whoever_does_not_check_is_told_so_wherever_there_is_a_certificate(
        self, admin: Client, scheme: str, is_told: bool
    ) -> None:
        typed = self.typed(url=f"{scheme}://127.0.0.1:1/metrics", tls_is_unchecked="on")
        assert admin.post(f"{LIST}add/", typed).status_code == 302
        page = admin.get(LIST).content.decode()
        assert ("Its certificate is not checked: anybody on the way may answer." in page) == is_told

    def test_the_embedded_source_has_none_of_it(self, admin: Client) -> None:
        page = admin.get(f"{LIST}{ensure_embedded().pk}/change/").content.decode()
        assert "typed_token" not in page


def test_the_list_says_what_was_detected(admin: Client) -> None:
    fields = {"url": "http://prod/metrics", "kind": "auto"}
    Source.objects.create(name="found", detected_kind="vllm", **fields)
    Source.objects.create(name="new", **fields)
    page = admin.get("/admin/dashboard/source/").content.decode()
    assert "vLLM 0.32 or newer (detected)" in page
    assert '<td class="field-read_kind">Detect</td>' in page


def test_why_a_source_could_not_be_read_is_said_once(admin: Client) -> None:
    source = Source.objects.create(
        name="prod",
        url="http://prod/metrics",
        last_error="prod could not be read: Connection refused.",
        last_scraped_at=timezone.now(),
    )
    page = admin.get(f"/admin/dashboard/source/{source.pk}/change/").content.decode()
    assert page.count("prod could not be read: Connection refused.") == 1
