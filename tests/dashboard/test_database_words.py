"""A database that cannot be used now: one sentence for whoever can mend that, on pages, in APIs and by commands."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, OperationalError, ProgrammingError
from django.test import Client

from dashboard.database_words import why_not

ROOT = Path(__file__).parents[2]
FULL = OperationalError("database or disk is full")


@pytest.mark.parametrize(
    ("error", "begins"),
    [
        (FULL, "The disk of the database is full"),
        (OperationalError('could not extend file "base/1/2": No space left on device'), "The disk of the database is"),
        (OperationalError("attempt to write a readonly database"), "The database can only be read"),
        (OperationalError("unable to open database file"), "The database's file cannot be opened"),
        (OperationalError("no such table: dashboard_source"), "The database has no tables of this version"),
        (ProgrammingError('relation "dashboard_source" does not exist'), "The database has no tables of this version"),
        (OperationalError("database is locked"), "The database was busy for too long"),
        (OperationalError("connection failed: Connection refused"), "The database's server does not answer"),
    ],
)
def test_what_whoever_runs_it_can_mend_is_a_sentence(error: DatabaseError, begins: str) -> None:
    assert why_not(error).startswith(begins)


@pytest.mark.parametrize(
    "error", [ProgrammingError('syntax error at or near "FROM"'), ValueError("disk is full"), None]
)
def test_what_only_we_can_mend_is_for_the_log(error: Exception | None) -> None:
    assert why_not(error) == ""


@pytest.fixture
def browser(client: Client, monkeypatch: pytest.MonkeyPatch) -> Client:
    """Of a person who is logged in, while nothing can be stored."""
    client.force_login(User.objects.create_superuser("ada"))
    client.raise_request_exception = False

    def full(*args: object, **options: object) -> None:
        raise FULL

    for place in ("read_api.views.period_of", "views.chart_data.read_query", "admin.sources.SourceAdmin.save_model"):
        monkeypatch.setattr(f"dashboard.{place}", full)
    return client


@pytest.mark.django_db
class TestDiskFull:
    def test_a_form_says_so(self, browser: Client) -> None:
        form = {"name": "prod", "kind": "auto", "url": "http://127.0.0.1:1/m", "interval_seconds": "10"}
        answer = browser.post("/admin/dashboard/source/add/", form)
        assert (answer.status_code, "disk of the database is full" in answer.content.decode()) == (503, True)

    def test_programs_are_told_in_the_shape_of_their_errors(self, browser: Client) -> None:
        answer = browser.get("/api/v1/totals")
        error = json.loads(answer.content)["error"]
        assert (answer.status_code, error["code"], error["message"]) == (503, "database_unavailable", why_not(FULL))

    def test_pages_scripts_are_told_in_theirs(self, browser: Client) -> None:
        answer = browser.get("/api/tiles.json")
        assert (answer.status_code, answer.json()) == (503, {"error": why_not(FULL)})


@pytest.mark.django_db
def test_another_error_is_said_to_be_in_the_log(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    client.force_login(User.objects.create_superuser("ada"))
    client.raise_request_exception = False
    monkeypatch.setattr("dashboard.views.pages.charts_page", lambda *args, **told: 1 / 0)
    answer = client.get("/")
    assert (answer.status_code, "in the log of the web process" in answer.content.decode()) == (500, True)


def test_a_command_that_finds_another_database_says_how_to_find_the_right_one(tmp_path: Path) -> None:
    """Most often TIERSCOPE_HOME was set for `make run` only."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("TIERSCOPE_", "DATABASE_URL"))}
    command = [sys.executable, "manage.py", "addsource", "prod", "http://127.0.0.1:1/metrics"]
    home = {"TIERSCOPE_HOME": str(tmp_path)}
    done = subprocess.run(command, cwd=ROOT, env=env | home, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert done.stderr == why_not(OperationalError("no such table")) + "\n"
