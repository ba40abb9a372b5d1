"""Mappings that admins type: what may be typed, what is made of it, and trying it against a real server first."""

import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client
from django.utils import timezone

from dashboard import valkey as valkey_module
from dashboard.models import Mapping, MappingRow, Series, Source
from dashboard.services.recording import record
from dashboard.services.sources import add_source, target_of
from tests.dashboard.told import moment, stored
from tests.stored import rows as stored_rows

pytestmark = pytest.mark.django_db

PAGE = "/admin/dashboard/mapping/"
START = 1_800_000_000
TEXT = """# TYPE acme_prompt_tokens_total counter
acme_prompt_tokens_total{node="n1",model="m"} 1000
acme_reused_tokens_total{node="n1",model="m",where="hbm"} 300
acme_reused_tokens_total{node="n1",model="m",where="dram"} 200
acme_reused_tokens_total{node="n1",model="m",where="nowhere"} 7
acme_pool_bytes{node="n1",where="dram"} 4294967296
"""
ROWS: list[dict[str, str]] = [
    {"name": "acme_prompt_tokens_total", "means": "prompt_tokens"},
    {"name": "acme_reused_tokens", "label": "where", "value": "hbm", "means": "hit_tokens", "cache_tier": "gpu"},
    {"name": "acme_reused_tokens", "label": "where", "value": "dram", "means": "hit_tokens", "cache_tier": "cpu"},
    {"name": "acme_pool_bytes", "label": "where", "value": "dram", "means": "used_bytes", "cache_tier": "cpu"},
]


@pytest.fixture
def address() -> Iterator[str]:
    """A real HTTP server that says what an engine says that nobody knows."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(TEXT.encode())

        def log_message(self, *args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/metrics"
    server.shutdown()
    server.server_close()


def typed(rows: list[dict[str, str]], **told: str) -> dict[str, str]:
    """The form as a browser sends it, with an empty row at its end as the admin always has."""
    form = {"name": "acme", "engine_label": "node", "model_label": "model", "is_complete": "on", **told}
    for number, row in enumerate([*rows, {}]):
        filled = {"id": "", "mapping": "", "name": "", "label": "", "value": "", "means": "", "cache_tier": "", **row}
        form |= {f"rows-{number}-{name}": value for name, value in filled.items()}
    return form | {"rows-TOTAL_FORMS": str(len(rows) + 1), "rows-INITIAL_FORMS": "0", "rows-MAX_NUM_FORMS": "100"}


def saved(**told: Any) -> Mapping:
    mapping = Mapping.objects.create(
        **{"name": "acme", "engine_label": "node", "model_label": "model", "is_complete": True, **told}
    )
    MappingRow.objects.bulk_create(MappingRow(mapping=mapping, **row) for row in ROWS)
    return mapping


def watched(mapping: Mapping | None, **told: Any) -> Source:
    fields = {"name": "prod", "url": "http://prod/metrics", "kind": "mapping", "mapping": mapping, **told}
    return Source.objects.create(**fields)


def scrape(source: Source, seconds: float, text: str) -> bool:
    Source.objects.filter(pk=source.pk).update(due_at=moment(seconds))
    return record(source.pk, now=moment(seconds), connection=valkey_module.client(), fetch_text=lambda target: text)


def test_the_page_has_rows_and_a_button_that_tries_them(admin: Client) -> None:
    page = admin.get(f"{PAGE}add/").content.decode()
    assert 'formaction="/admin/dashboard/mapping/try/"' in page
    assert page.count('name="rows-0-') >= 5


def test_typed_rows_are_saved_and_read(admin: Client) -> None:
    response = admin.post(f"{PAGE}add/", typed(ROWS))
    assert response.status_code == 302, re.findall("errorlist.*", response.content.decode())
    mapping = Mapping.objects.get()
    assert [(row.name, row.value, row.cache_tier) for row in mapping.rows.all()] == [
        ("acme_prompt_tokens_total", "", ""),
        ("acme_reused_tokens", "hbm", "gpu"),
        ("acme_reused_tokens", "dram", "cpu"),
        ("acme_pool_bytes", "dram", "cpu"),
    ]
    assert "0 sources" in admin.get(PAGE).content.decode()


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ({"name": "no name", "means": "prompt_tokens"}, "is no name of a metric"),
        ({"name": "a", "label": "where", "means": "prompt_tokens"}, "A label needs its value"),
        ({"name": "a", "means": "hit_tokens"}, "Say of which tier"),
        ({"name": "a", "means": "prompt_tokens", "cache_tier": "gpu"}, "These tokens are of no tier"),
        ({"name": "a", "means": "happiness"}, "Select a valid choice"),
        ({"name": "acme:prompt_tokens", "means": "prompt_tokens"}, "they would count twice"),
        ({"name": "acme_reused_tokens", "means": "hit_tokens", "cache_tier": "disk"}, "they would count twice"),
    ],
)
def test_a_row_that_cannot_be_meant_is_refused_in_a_sentence(admin: Client, row: dict[str, str], sentence: str) -> None:
    assert sentence in admin.post(f"{PAGE}add/", typed([*ROWS, row])).content.decode()
    assert not Mapping.objects.exists()


def test_a_mapping_without_rows_is_refused(admin: Client) -> None:
    assert "Type at least one row" in admin.post(f"{PAGE}add/", typed([])).content.decode()


def test_trying_shows_what_is_made_of_the_text_and_what_else_is_in_it_and_saves_nothing(
    admin: Client, address: str
) -> None:
    response = admin.post(f"{PAGE}try/", typed(ROWS, try_url=address))
    page = response.content.decode()
    assert response.status_code == 200
    assert all(cell in page for cell in ("n1", "<td>1000</td>", "<td>300</td>", "<td>200</td>", "<td>500</td>"))
    assert "acme_reused_tokens{node=&quot;n1&quot;, model=&quot;m&quot;, where=&quot;nowhere&quot;} 7" in page
    assert not Mapping.objects.exists()
    assert not Series.objects.exists()


def test_trying_shows_generated_tokens_and_sizes_too_with_all_their_digits(admin: Client, address: str) -> None:
    page = admin.post(f"{PAGE}try/", typed(ROWS, try_url=address)).content.decode()
    assert "<td>used bytes</td><td>cpu</td><td>4294967296</td>" in page
    assert "where=&quot;dram&quot;} 4294967296" in page


def test_trying_names_each_row_that_finds_nothing(admin: Client, address: str) -> None:
    misspelt = [
        {"name": "acme_made_tokenz", "means": "generated_tokens"},
        {"name": "acme_reused_tokens", "label": "where", "value": "nvme", "means": "hit_tokens", "cache_tier": "disk"},
    ]
    page = admin.post(f"{PAGE}try/", typed([*ROWS, *misspelt], try_url=address)).content.decode()
    assert "No sample is called acme_made_tokenz: its row finds nothing in this text." in page
    assert "No sample is called acme_reused_tokens with where=“nvme”: its row finds nothing in this text." in page
    assert page.count("its row finds nothing") == 2


def test_trying_a_saved_mapping_uses_the_rows_on_the_page(admin: Client, address: str) -> None:
    mapping = saved()
    rows = [
        {"id": str(row.pk), "mapping": str(mapping.pk), "name": row.name, "label": row.label, "value": row.value}
        | {"means": row.means, "cache_tier": row.cache_tier}
        for row in mapping.rows.all()
    ]
    rows[1]["DELETE"] = "on"
    page = admin.post(f"{PAGE}try/", typed(rows, try_url=address) | {"rows-INITIAL_FORMS": "4"}).content.decode()
    assert "<td>200</td>" in page
    assert "<td>300</td>" not in page
    assert mapping.rows.count() == 4


@pytest.mark.parametrize(
    ("told", "rows", "sentence"),
    [
        ({"try_url": "acme"}, ROWS, "Enter an address"),
        ({"try_url": "http://127.0.0.1:1/metrics"}, ROWS, "could not be read"),
        ({}, [{"name": "a", "means": "hit_tokens"}], "Row 1: Say of which tier"),
        ({}, [{"name": "absent_total", "means": "prompt_tokens"}], "expected absent."),
    ],
)
def test_what_cannot_be_tried_says_why(
    admin: Client, address: str, told: dict[str, str], rows: list[dict[str, str]], sentence: str
) -> None:
    page = admin.post(f"{PAGE}try/", typed(rows, **{"try_url": address, **told})).content.decode()
    assert sentence in page


def test_trying_needs_a_post_and_a_right(admin: Client, client: Client) -> None:
    assert admin.get(f"{PAGE}try/").status_code == 403
    client.force_login(User.objects.create_user("grace", is_staff=True))
    assert client.post(f"{PAGE}try/", typed(ROWS)).status_code == 403


@pytest.mark.usefixtures("valkey")
def test_a_source_is_recorded_by_its_mapping_to_the_token() -> None:
    source = watched(saved())
    scrape(source, START, TEXT)
    scrape(source, START + 10, TEXT.replace("} 1000", "} 1100").replace("} 300", "} 330"))
    assert stored(10) == {("prompt_tokens", ""): 100, ("hit_tokens", "gpu"): 30, ("computed_tokens", ""): 70}
    assert set(Series.objects.values_list("engine", "model_name")) == {("prod/n1", "m")}


@pytest.mark.usefixtures("valkey")
def test_computed_tokens_do_not_follow_where_hits_may_be_missing() -> None:
    source = watched(saved(is_complete=False))
    for second, prompt in ((0, 1000), (10, 1100)):
        scrape(source, START + second, TEXT.replace("} 1000", f"}} {prompt}"))
    assert stored(10) == {("prompt_tokens", ""): 100}


@pytest.mark.usefixtures("valkey")
def test_a_mapping_that_changed_starts_its_sources_over(admin: Client) -> None:
    mapping = saved()
    source = watched(mapping)
    scrape(source, START, TEXT)
    rows = [
        {"id": str(row.pk), "mapping": str(mapping.pk), "name": row.name, "label": row.label, "value": row.value}
        | {"means": row.means, "cache_tier": row.cache_tier}
        for row in mapping.rows.all()
    ]
    rows[1]["name"] = "acme_other_tokens"
    admin.post(f"{PAGE}{mapping.pk}/change/", typed(rows) | {"rows-INITIAL_FORMS": "4"})
    assert mapping.rows.filter(name="acme_other_tokens").exists()
    scrape(source, START + 10, TEXT + 'acme_other_tokens{node="n1",model="m",where="hbm"} 900\n')
    assert not stored_rows(metric="hit_tokens")


@pytest.mark.parametrize(
    ("kind", "has_mapping", "sentence"), [("mapping", False, "Choose a mapping"), ("vllm", True, "Leave the mapping")]
)
def test_exactly_sources_that_are_read_by_a_mapping_have_one(kind: str, has_mapping: bool, sentence: str) -> None:
    mapping = saved() if has_mapping else None
    with pytest.raises(ValidationError, match=sentence):
        add_source("prod", "http://prod/metrics", kind=kind, interval_seconds=10, now=timezone.now(), mapping=mapping)


def test_a_source_whose_mapping_is_missing_says_so() -> None:
    assert target_of(watched(None)).typed is None


def test_a_mapping_that_is_used_is_not_deleted(admin: Client) -> None:
    mapping = saved()
    watched(mapping)
    admin.post(f"{PAGE}{mapping.pk}/delete/", {"post": "yes"})
    assert Mapping.objects.exists()


def test_the_command_adds_a_source_by_the_name_of_its_mapping(capsys: pytest.CaptureFixture[str]) -> None:
    saved()
    call_command("addsource", "prod", "http://127.0.0.1:1/metrics", "--kind", "mapping", "--mapping", "acme")
    assert str(Source.objects.get().mapping) == "acme"
    told = "Nothing can be read there yet: 127.0.0.1 could not be read: Connection refused."
    assert capsys.readouterr().out == f"prod is scraped every 10 s. {told}\n"
    with pytest.raises(CommandError, match="There is no mapping “other”"):
        call_command("addsource", "two", "http://127.0.0.1:1/metrics", "--kind", "mapping", "--mapping", "other")
