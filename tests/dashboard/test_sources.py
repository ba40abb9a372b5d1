"""Watching another engine over real HTTP: limits, redirects, refusals; and how a source is added."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client
from django.utils import timezone

from dashboard import valkey
from dashboard.models import Source
from dashboard.selectors.source_places import read_twice
from dashboard.services.recording import record
from dashboard.services.sources import add_source, ensure_embedded
from dashboard.sources import http
from dashboard.sources.http import ScrapeError, fetch
from tests.stored import rows

TEXT = (Path(__file__).parent / "expositions" / "vllm-0.32.0-cpu-after.txt").read_text()


class _Engine(BaseHTTPRequestHandler):
    """Serves what the path asks for."""

    def do_GET(self) -> None:
        status = {"/moved": 302, "/broken": 500}.get(self.path, 200)
        body = b"x" * 5000 if self.path == "/large" else TEXT.encode()
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/metrics")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.path == "/silent":
            threading.Event().wait(1)
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def engine_url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Engine)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_metrics_text_is_fetched_whole(engine_url: str) -> None:
    assert fetch(f"{engine_url}/metrics") == TEXT


@pytest.mark.parametrize(("path", "sentence"), [("/moved", "a redirect"), ("/broken", "answered 500; expected 200")])
def test_an_answer_that_is_no_metrics_text_is_told(engine_url: str, path: str, sentence: str) -> None:
    with pytest.raises(ScrapeError, match=sentence):
        fetch(engine_url + path)


def test_an_answer_without_end_is_cut_off(engine_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MAX_BYTES", 4000)
    with pytest.raises(ScrapeError, match="the most that is read"):
        fetch(f"{engine_url}/large")


def test_a_silent_engine_is_given_up(engine_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "TIMEOUT", httpx.Timeout(0.1))
    with pytest.raises(ScrapeError, match="did not answer within"):
        fetch(f"{engine_url}/silent")


def test_who_listens_to_nobody_is_told_as_such() -> None:
    with pytest.raises(ScrapeError, match="Connection refused"):
        fetch("http://127.0.0.1:1/metrics")


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1/metrics", "http://[broken", "ftp://x/y", "http://nowhere.invalid/"]
)
def test_an_engine_that_is_not_there_is_told_in_a_sentence(url: str) -> None:
    with pytest.raises(ScrapeError, match=r"could not be read"):
        fetch(url)


@pytest.mark.usefixtures("valkey")
@pytest.mark.django_db
def test_a_real_engine_is_watched_from_its_first_scrape_on(engine_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("addsource", "prod", f"{engine_url}/metrics", "--interval", "5")
    assert capsys.readouterr().out == "prod is scraped every 5 s, as vLLM 0.32 or newer.\n"
    source = Source.objects.get(name="prod")
    assert record(source.pk, now=timezone.now(), connection=valkey.client())
    source.refresh_from_db()
    assert source.last_error == ""
    assert source.last_ok_at is not None
    (observed,) = rows(metric="scrapes", resolution=86400)
    assert (observed.engine, observed.model_name) == ("prod/0", "smollm2")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("name", "url", "interval", "sentence"),
    [
        ("prod", "gpu-7:8000/metrics", 10, "Enter an address"),
        ("prod", "http://[broken", 10, "Enter an address"),
        ("prod", "file:///etc/passwd", 10, "Enter an address"),
        ("prod", "http://ana:secret@gpu-7/metrics", 10, "Leave the user name and password out"),
        ("no spaces", "http://gpu-7:8000/metrics", 10, "^name: Enter a valid value. A name begins with a letter"),
        ("", "http://gpu-7:8000/metrics", 10, "^name: This field cannot be blank."),
        ("prod", "http://gpu-7:8000/metrics", 0, "^interval_seconds: Ensure this value is greater than or equal to 1"),
    ],
)
def test_a_source_that_cannot_be_watched_is_refused_with_a_sentence(
    name: str, url: str, interval: int, sentence: str
) -> None:
    with pytest.raises(CommandError, match=sentence):
        call_command("addsource", name, url, "--interval", str(interval))
    assert not Source.objects.exists()


@pytest.mark.django_db
def test_a_selector_that_is_empty_is_not_taken_for_none() -> None:
    with pytest.raises(CommandError, match="--selector is empty"):
        call_command("addsource", "prod", "http://prometheus:9090", "--selector", "")
    assert not Source.objects.exists()


@pytest.mark.django_db
def test_a_name_is_watched_once() -> None:
    add_source("prod", "http://gpu-7/metrics", kind="auto", interval_seconds=10, now=timezone.now())
    with pytest.raises(ValidationError, match="already exists"):
        add_source("prod", "http://gpu-8/metrics", kind="auto", interval_seconds=10, now=timezone.now())


@pytest.mark.django_db
def test_the_embedded_source_is_made_once() -> None:
    assert ensure_embedded() == ensure_embedded()
    assert Source.objects.count() == 1


@pytest.mark.usefixtures("valkey")
@pytest.mark.django_db
def test_an_engine_that_another_source_reads_already_is_told_to_be_counted_twice(
    engine_url: str, capsys: pytest.CaptureFixture[str], admin: Client
) -> None:
    told = "“prod” reads the same address as this kind of engine: all that it tells is counted twice. Remove one."
    for name in ("prod", "again"):
        call_command("addsource", name, f"{engine_url}/metrics")
    assert capsys.readouterr().out.endswith(f"again is scraped every 10 s, as vLLM 0.32 or newer. {told}\n")
    form = {"kind": "auto", "url": f"{engine_url}/metrics", "interval_seconds": "10", "is_enabled": "on"}
    page = "/admin/dashboard/source/"
    assert "counted twice" in admin.post(f"{page}add/", {"name": "third", **form}, follow=True).content.decode()
    assert "counted twice" in admin.get(f"{page}{Source.objects.get(name='again').pk}/change/").content.decode()
    call_command("addsource", "lmcache", f"{engine_url}/metrics", "--kind", "lmcache")
    assert "counted twice" not in capsys.readouterr().out


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("selector", "is_told"),
    [
        ('{job="vllm", instance="gpu-7:8000"}', True),
        ('{instance = "gpu-7:8000"}', True),
        ('{instance="gpu-7:80000"}', False),
        ('{instance!="gpu-7:8000"}', False),
        ('{old_instance="gpu-7:8000"}', False),
        ('{job="vllm"}', False),
    ],
)
def test_an_engine_that_is_read_itself_and_from_a_prometheus_is_told_on_both(selector: str, is_told: bool) -> None:
    itself = Source.objects.create(name="itself", url="http://gpu-7:8000/metrics", kind="vllm")
    found = Source.objects.create(name="found", url="http://prometheus:9090", kind="vllm", selector=selector)
    assert ("“itself” reads gpu-7:8000, too" in read_twice(found)) is is_told
    assert ("“found” reads gpu-7:8000, too" in read_twice(itself)) is is_told


@pytest.mark.django_db
def test_a_source_that_is_not_read_any_more_counts_nothing_twice() -> None:
    url = "http://gpu-7:8000/metrics"
    Source.objects.create(name="off", url=url, is_enabled=False)
    Source.objects.create(name="gone", url=url, gone_at=timezone.now())
    Source.objects.create(name="prometheus", url=url, selector='{job="vllm"}')
    assert read_twice(Source.objects.create(name="prod", url=url)) == ""
