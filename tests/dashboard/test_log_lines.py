"""What a client did wrong, or a full disk, is one line in the log: no traceback through code that is not to blame."""

import io
import logging
from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError
from django.test import Client

from dashboard.models import Source

pytestmark = pytest.mark.django_db


@pytest.fixture
def console() -> Iterator[io.StringIO]:
    """What goes to the log file."""
    handler = next(handler for handler in logging.root.handlers if type(handler) is logging.StreamHandler)
    text = io.StringIO()
    before = handler.setStream(text)
    yield text
    handler.setStream(before)


def test_a_foreign_host_name_is_one_line(console: io.StringIO) -> None:
    assert Client(headers={"host": "evil.example"}).get("/login/").status_code == 400
    assert len(console.getvalue().splitlines()) == 1
    assert "evil.example" in console.getvalue()


def test_so_are_too_many_form_fields(console: io.StringIO) -> None:
    assert Client().post("/login/", {f"field{number}": "" for number in range(1100)}).status_code == 400
    assert len(console.getvalue().splitlines()) == 1


def test_so_is_a_trial_that_is_only_looked_at(console: io.StringIO) -> None:
    browser = Client()
    browser.force_login(User.objects.create_superuser("ada"))
    source = Source.objects.create(name="one", url="http://127.0.0.1:1/metrics")
    assert browser.get(f"/admin/dashboard/source/{source.pk}/trial/").status_code == 403
    assert len(console.getvalue().splitlines()) == 1


def test_so_is_a_database_that_cannot_be_used(console: io.StringIO) -> None:
    """Every task would tell where it noticed: on the disk that is full."""
    try:
        raise OperationalError("database or disk is full")
    except OperationalError:
        logging.getLogger("celery.app.trace").exception("Task %s failed", "record_due")
    assert console.getvalue().endswith(
        "Task record_due failed – The disk of the database is full: nothing can be stored until there is room on it. "
        "What is stored stays.\n"
    )
    assert len(console.getvalue().splitlines()) == 1


@pytest.mark.parametrize("words", ["database is locked", "no such column: told", "syntax error"])
def test_an_error_of_the_database_that_may_be_ours_keeps_its_traceback(console: io.StringIO, words: str) -> None:
    try:
        raise OperationalError(words)
    except OperationalError:
        logging.getLogger("dashboard.tasks").exception("failed")
    assert "Traceback" in console.getvalue()


def test_our_own_failures_keep_their_traceback(console: io.StringIO) -> None:
    try:
        raise ZeroDivisionError
    except ZeroDivisionError:
        logging.getLogger("dashboard.tasks").exception("failed")
    assert "Traceback" in console.getvalue()
