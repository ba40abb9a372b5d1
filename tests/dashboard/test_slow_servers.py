"""A server that an admin's page asks may be slow: meanwhile everybody else writes. On a real SQLite file."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection
from django.test import Client

from dashboard.models import Source
from tests.dashboard.serving import Answer, serving

pytestmark = [
    pytest.mark.usefixtures("valkey", "store"),
    pytest.mark.parametrize("store", ["sqlite"], indirect=True),
]

SOURCES = "/admin/dashboard/source/"
TEXT = 'vllm:prompt_tokens_total{engine="0",model_name="m"} 1\n'


class Meanwhile:
    """Answers like an engine, and says of each time whether somebody else could write until then."""

    def __init__(self) -> None:
        self.could: list[bool] = []

    def __call__(self, path: str) -> Answer:
        try:
            with connection.cursor() as cursor:
                cursor.execute("PRAGMA busy_timeout = 0")  # who would have to wait fails
            Source.objects.filter(name="nobody").update(last_error="")
            self.could.append(True)
        except OperationalError:
            self.could.append(False)
        finally:
            connection.close()
        return Answer(TEXT)


@pytest.fixture
def admin(store: str) -> Iterator[Client]:
    user = User.objects.create_superuser("slow-ada")
    client = Client()
    client.force_login(user)
    yield client
    user.delete()


def _add(admin: Client, url: str) -> None:
    form = {"name": "prod", "kind": "auto", "url": f"{url}/metrics", "interval_seconds": "10"}
    admin.post(f"{SOURCES}add/", form)
    assert Source.objects.get(name="prod").url == f"{url}/metrics"


def _change(admin: Client, url: str) -> None:
    source = Source.objects.create(name="prod", url="http://127.0.0.1:1/metrics")
    form = {"name": "prod", "kind": "auto", "url": f"{url}/metrics", "interval_seconds": "10"}
    admin.post(f"{SOURCES}{source.pk}/change/", form)
    assert Source.objects.get(name="prod").url == f"{url}/metrics"


def _read_now(admin: Client, url: str) -> None:
    source = Source.objects.create(name="prod", url=f"{url}/metrics")
    assert admin.post(f"{SOURCES}{source.pk}/trial/").status_code == 200


def _try_mapping(admin: Client, url: str) -> None:
    rows = {"rows-TOTAL_FORMS": "1", "rows-INITIAL_FORMS": "0", "rows-0-name": "vllm:prompt_tokens"}
    typed = {**rows, "rows-0-means": "prompt_tokens", "try_url": f"{url}/metrics"}
    assert b"prompt" in admin.post("/admin/dashboard/mapping/try/", typed).content


@pytest.mark.parametrize("asked", [_add, _change, _read_now, _try_mapping])
def test_others_write_while_a_page_waits_for_a_server(admin: Client, asked: Callable[[Client, str], Any]) -> None:
    meanwhile = Meanwhile()
    with serving(meanwhile) as served:
        asked(admin, served.url)
    assert meanwhile.could == [True]


def test_nobody_without_the_right_to_add_has_a_server_asked(admin: Client) -> None:
    User.objects.filter(username="slow-ada").update(is_superuser=False)
    with serving(Meanwhile()) as served:
        form = {"name": "prod", "kind": "auto", "url": f"{served.url}/metrics", "interval_seconds": "10"}
        assert admin.post(f"{SOURCES}add/", form).status_code == 403
    assert served.asked == []
