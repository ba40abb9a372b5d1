"""What can only fail later is refused where it is typed: addresses, headers, certificates, times; and odd line ends."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from dashboard.models import Backfill, Discovery, Source
from dashboard.services.backfill import check
from dashboard.sources.address import address_problem
from dashboard.sources.exposition import parse

ODD = [
    *("http://[::1]:x/", "http://[::1", "http://gpu-7:99999/", "http://gpu-7:0/", "http://..", "http://%zz/"),
    *("http://gpu-7/met\trics", "http://gpu\n-7/", "http://gpu-7/a b", "http://@gpu-7/", "http://xn--/", "http:///x"),
    *(
        f"http://{'a' * 64}.com/",
        f"http://{'a.' * 127}com/",
        "http://a\\b/",
        "http://999.1.1.1/",
        "http://gpu-7:\u0663/",
    ),
]


@pytest.mark.parametrize("url", ODD)
def test_an_address_that_can_only_fail_is_one_sentence(url: str) -> None:
    assert address_problem(url).endswith(".")


@pytest.mark.parametrize(
    "url",
    [
        *("http://gpu-7:8000/metrics", "https://10.0.0.7/m?a=%20#b", "http://[::1]:9/", "http://vllm_1:8000/m"),
        *("http://gpu-7./", "http://münchen.example/", "HTTP://gpu-7/", "http://127.1/"),
    ],
)
def test_an_address_that_can_be_asked_is_none(url: str) -> None:
    assert address_problem(url) == ""


@pytest.mark.django_db
@pytest.mark.parametrize("number", ["-1", "0", "3601", "9" * 30])
def test_a_number_that_is_refused_is_not_reckoned_with(client: Client, number: str) -> None:
    """The page of a source and of a discovery shows how they go, which depends on how often they are read."""
    client.force_login(User.objects.create_superuser("ada"))
    now = timezone.now()
    source = Source.objects.create(name="prod", url="http://127.0.0.1:1/m", last_scraped_at=now, last_ok_at=now)
    form = {"name": "prod", "kind": "auto", "url": source.url, "interval_seconds": number, "is_enabled": "on"}
    page = client.post(f"/admin/dashboard/source/{source.pk}/change/", form).content.decode()
    assert ("Ensure this value" in page, page.count("Ensure this value"), ">up</b>" in page) == (True, 1, True)
    told = {"name": "list", "kind": "file", "location": "/etc/targets/a.json", "source_kind": "auto"}
    discovery = Discovery.objects.create(name="list", location="/etc/targets/a.json", last_ok_at=now)
    form = {**told, "interval_seconds": "10", "refresh_seconds": "9" * 30}
    answer = client.post(f"/admin/dashboard/discovery/{discovery.pk}/change/", form)
    assert "Ensure this value" in answer.content.decode()


@pytest.mark.django_db
@pytest.mark.parametrize(
    "typed",
    [
        {"url": "http://[::1]:x/"},
        {"url": "http://gpu-7/met\trics"},
        {"typed_headers": "X-Team: ü"},
        {"tls_ca": "ü"},
    ],
)
def test_the_form_says_so(client: Client, typed: dict[str, str]) -> None:
    client.force_login(User.objects.create_superuser("ada"))
    form = {"name": "prod", "kind": "auto", "url": "http://127.0.0.1:1/m", "interval_seconds": "10", **typed}
    assert b"errornote" in client.post("/admin/dashboard/source/add/", form).content
    assert not Source.objects.exists()


@pytest.mark.django_db
def test_the_command_says_so() -> None:
    with pytest.raises(CommandError, match="the host or the port cannot be read"):
        call_command("addsource", "prod", "http://gpu-7:99999/")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("start_at", "sentence"),
    [
        (datetime(1, 1, 1, tzinfo=UTC), "from before 2000"),
        (datetime(2001, 1, 1, tzinfo=UTC), "13,675,680 steps; at most 1,000,000"),
        (datetime(2026, 1, 1, tzinfo=UTC), ""),
    ],
)
def test_no_import_has_more_steps_than_anybody_waits_for(start_at: datetime, sentence: str) -> None:
    source = Source.objects.create(name="prod", url="http://gpu-7/metrics")
    told: dict[str, Any] = {"url": "http://prometheus:9090", "selector": '{a="b"}', "step_seconds": 60}
    end_at = datetime(2027, 1, 2, tzinfo=UTC)
    wanted = Backfill(source=source, start_at=start_at, end_at=end_at, **told)
    if not sentence:
        check(wanted)
        return
    with pytest.raises(ValidationError, match=sentence):
        check(wanted)


@pytest.mark.django_db
@pytest.mark.parametrize("days", ["0", "-1", "1e9", "nan", "inf"])
def test_the_command_refuses_days_that_are_none(days: str) -> None:
    Source.objects.create(name="prod", url="http://gpu-7/metrics")
    with pytest.raises(CommandError, match="--days is"):
        call_command("backfill", "prod", "http://127.0.0.1:1", "--days", days)


@pytest.mark.parametrize("odd", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\r"])
@pytest.mark.parametrize("beside", ["", "this is no sample\n"], ids=["whole", "line by line"])
@pytest.mark.parametrize("wanted", [None, {"a"}])
def test_only_a_line_feed_ends_a_line(odd: str, beside: str, wanted: set[str] | None) -> None:
    told = parse(f'{beside}a{{b="x{odd}y"}} 1\r\na{{b="z"}} 2\r\n', wanted)
    assert [(sample.labels["b"], sample.value) for sample in told.samples] == [(f"x{odd}y", 1.0), ("z", 2.0)]


@pytest.mark.usefixtures("store")
def test_an_engine_s_address_with_what_no_database_takes_is_that_of_none(client: Client) -> None:
    """PostgreSQL takes no NUL."""
    ada = User.objects.create_user("ada-of-odd-addresses")
    client.force_login(ada)
    assert client.get("/engines/a%00b/").status_code == 404
    ada.delete()
