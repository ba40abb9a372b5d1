"""What Thanos, Mimir and VictoriaMetrics do otherwise than a Prometheus, as their documents and sources have it.

A real VictoriaMetrics also answers every test that asks `past`.
"""

import json
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlencode

import httpx
import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client
from django.utils import timezone

from dashboard import valkey as names
from dashboard.models import Backfill, Source
from dashboard.services import backfill as service
from dashboard.services.backfill import advance, plan, take_access, unfinished_ids
from dashboard.services.recording import record
from dashboard.sources.prometheus import Form, names_pattern
from dashboard.sources.target import Allowed
from tests.dashboard.past import END, NUM_STEPS, RESET_AT, SELECTOR, START, STEP, TRUTH
from tests.dashboard.serving import Answer, Served, serving
from tests.dashboard.told import moment, stored
from tests.e2e.prometheus import Prometheus
from tests.e2e.victoria import VictoriaMetrics
from tests.stored import rows

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("valkey")]

METRIC = {"__name__": "vllm:prefix_cache_queries_total"}
COUNTER = 'vllm:prefix_cache_queries_total{instance="gpu-7:8000"}'
WARNINGS = [{"warnings": ["receive series from Addr: thanos-0:10901: rpc error"]}, {"isPartial": True}]


def source(**told: object) -> Source:
    usual = {"name": "prod", "kind": "vllm_old", "url": "http://gpu-7:8000/metrics"}
    return Source.objects.create(**usual | told)


def wanted(of: Source, url: str = "http://prometheus:9090", **told: object) -> Backfill:
    usual = {"selector": SELECTOR, "start_at": moment(START), "end_at": moment(END), "step_seconds": STEP}
    return Backfill(source=of, url=url, **usual | told)


def answered(kind: str, *result: object, **more: object) -> str:
    return json.dumps({"status": "success", "data": {"resultType": kind, "result": result}, **more})


def look(of: Source, second: float) -> Source:
    Source.objects.filter(pk=of.pk).update(due_at=moment(second))
    record(of.pk, now=moment(second), connection=names.client())
    of.refresh_from_db()
    return of


# -- an answer with a part missing -------------------------------------------------------------------------------------
@pytest.mark.parametrize("more", WARNINGS)
def test_a_part_of_a_history_is_told_and_the_whole_is_imported_later(more: dict[str, object]) -> None:
    (one,) = plan(wanted(source(), end_at=moment(START + 2 * STEP)), now=timezone.now())
    values = [[START, "100"], [START + STEP, "150"]]
    part = answered("matrix", {"metric": METRIC, "values": values[:1]}, **more)
    now = timezone.now()
    assert not advance(one.pk, now=now, ask=lambda url, form, allowed: part)
    one.refresh_from_db()
    assert one.last_error.startswith("The Prometheus warns: ")
    assert one.last_error.endswith("What may be a part of the history is not imported; it is asked for again.")
    whole = answered("matrix", {"metric": METRIC, "values": values})
    later = now + timedelta(seconds=service.CLAIM_SECONDS + 1)
    assert advance(one.pk, now=later, ask=lambda url, form, allowed: whole)
    assert stored(86400)["prompt_tokens", ""] == 50


def test_time_that_no_store_of_an_older_thanos_has_is_history_without_samples() -> None:
    """It warns of that with an empty answer; newer ones log it only."""
    empty = answered("matrix", warnings=["No StoreAPIs matched for this query"])
    (one,) = plan(wanted(source(), end_at=moment(START + STEP)), now=timezone.now())
    assert advance(one.pk, now=timezone.now(), ask=lambda url, form, allowed: empty)
    one.refresh_from_db()
    assert (one.is_done, one.num_samples, one.last_error) == (True, 0, "")


@pytest.mark.parametrize("more", WARNINGS)
def test_a_part_of_an_engines_series_is_no_reading(more: dict[str, object]) -> None:
    """Of two series that are added up one is away: the smaller sum would be a restart, and count all of it again."""
    now = timezone.now().timestamp()
    both: list[dict[str, object]] = [{"metric": {**METRIC, "rank": rank}, "value": [now, "500"]} for rank in ("0", "1")]
    at = answered("vector", {"metric": {}, "value": [now, f"{now - 3}"]})
    then = answered("vector", {"metric": {}, "value": [now, f"{now + 17}"]})
    answers = [answered("vector", *both), at, answered("vector", *both[:1], **more), answered("vector", *both), then]
    with serving(lambda path: Answer(answers[len(served.asked) - 1])) as served:
        prod = look(source(url=served.url, selector=SELECTOR), now)
        assert prod.last_error == ""
        assert look(prod, now + 10).last_error.startswith("The Prometheus warns: ")
        assert "is not counted" in prod.last_error
        assert look(prod, now + 20).last_error == ""
    assert stored(86400) == {}


@pytest.mark.skipif(shutil.which("prometheus") is None, reason="apt-get install prometheus")
def test_a_real_prometheus_whose_remote_storage_is_away_is_neither_read_nor_imported(tmp_path: Path) -> None:
    away = "remote_read: [{url: 'http://127.0.0.1:1/api/v1/read', read_recent: true}]\n"
    with Prometheus("127.0.0.1:1", tmp_path, away) as prometheus:
        deadline = time.monotonic() + 30
        while not prometheus.query("vector(1)"):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        told = "The Prometheus warns: remote_read: "
        prod = source(url=prometheus.url, selector=SELECTOR)
        assert look(prod, time.time()).last_error.startswith(told)
        (one,) = plan(wanted(prod, prometheus.url), now=timezone.now())
        assert not advance(one.pk, now=timezone.now())
        one.refresh_from_db()
        assert one.last_error.startswith(told)


# -- one engine --------------------------------------------------------------------------------------------------------
def test_history_of_two_engines_is_not_added_up(past: str) -> None:
    (one,) = plan(wanted(source(kind="vllm"), past, selector='{job="vllm"}'), now=timezone.now())
    assert not advance(one.pk, now=timezone.now())
    one.refresh_from_db()
    told = (
        '2 engines have series where {job="vllm"}: instance="gpu-7:8000" and instance="gpu-9:8000". Choose one of them'
    )
    assert one.last_error.startswith(told)
    assert stored(86400) == {}


def test_an_engine_that_moved_is_one_that_started_anew() -> None:
    """Its old series is told for five minutes more; the two are never added up."""
    moved = {"10.0.0.7": [0, 100, 200, *[300] * 5], "10.0.0.8": [0, 10, 20, 30, 40, 50]}
    begins = {"10.0.0.7": 0, "10.0.0.8": 4}
    series: list[dict[str, object]] = [
        {
            "metric": {**METRIC, "instance": instance},
            "values": [[START + (begins[instance] + step) * STEP, str(value)] for step, value in enumerate(values)],
        }
        for instance, values in moved.items()
    ]
    (one,) = plan(wanted(source(), selector='{pod="vllm-0"}', end_at=moment(START + 9 * STEP)), now=timezone.now())
    assert advance(one.pk, now=timezone.now(), ask=lambda url, form, allowed: answered("matrix", *series))
    assert stored(86400)["prompt_tokens", ""] == 300 + 50


@pytest.mark.skipif(shutil.which("victoria-metrics") is None, reason="apt-get install victoria-metrics")
def test_what_a_victoriametrics_was_given_after_it_was_asked_is_imported(tmp_path: Path) -> None:
    with VictoriaMetrics(tmp_path) as victoria:
        for name, last in (("half", NUM_STEPS // 2), ("whole", NUM_STEPS)):
            samples = (f"{COUNTER} {step} {START + step * STEP}000\n" for step in range(last + 1))
            victoria.take("".join(samples), forget=False)
            (one,) = plan(wanted(source(name=name), victoria.url), now=timezone.now())
            while not one.is_done:
                assert advance(one.pk, now=timezone.now())
                one.refresh_from_db()
    minutes = [row.value for row in rows(resolution=60, engine="whole", metric="prompt_tokens")]
    assert minutes == [1] * NUM_STEPS


# -- the ends of a range -----------------------------------------------------------------------------------------------
@contextmanager
def aligning(behind: str) -> Iterator[Served]:
    """A query frontend of Thanos as it is by default, --query-range.align-range-with-step: the ends of a range are
    moved down to multiples of its step; a moment is asked as it is.
    """

    def answer(path: str) -> Answer:
        form = {name: told[0] for name, told in parse_qs(served.bodies[-1]).items()}
        if path.endswith("/query_range"):
            step = float(form["step"])
            form |= {name: str(float(form[name]) // step * step) for name in ("start", "end")}
        return Answer(httpx.post(behind + path, content=urlencode(form), headers=FORM, timeout=20).text)

    with serving(answer) as served:
        yield served


FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def test_history_joins_live_readings_behind_a_frontend_that_aligns_ranges(past: str) -> None:
    """The first live reading lies between two steps of the import: moved down, its last look would find less."""
    with aligning(past) as served:
        prod = source(kind="auto", url=served.url, selector=SELECTOR, interval_seconds=STEP)
        for step in (101, RESET_AT, RESET_AT + 1, 400):
            look(prod, START + step * STEP + 17)
        (one,) = plan(wanted(prod, served.url, step_seconds=50), now=moment(END))
        while not one.is_done:
            assert advance(one.pk, now=timezone.now())
            one.refresh_from_db()
    assert stored(86400) == TRUTH


def test_an_import_waits_until_nothing_before_its_end_can_still_come() -> None:
    """A VictoriaMetrics answers for its last 30 s with what was before them."""
    asked: list[Form] = []

    def ask(url: str, form: Form, allowed: Allowed) -> str:
        asked.append(form)
        first = float(form.get("start", form.get("time", "")))
        return answered("matrix", {"metric": METRIC, "values": [[first, "1"]]})

    now = moment(START + 3 * STEP + 7)
    (one,) = plan(wanted(source(), end_at=now), now=now)
    assert one.end_at == moment(START + 3 * STEP)
    assert advance(one.pk, now=now, ask=ask)
    one.refresh_from_db()
    assert one.cursor_at == moment(START + 2 * STEP)
    assert not advance(one.pk, now=now, ask=ask)
    one.refresh_from_db()
    assert (one.last_error, unfinished_ids(now), len(asked)) == ("", [], 1)
    later = one.end_at + timedelta(seconds=service.SETTLE_SECONDS)
    assert unfinished_ids(later) == [one.pk]
    assert advance(one.pk, now=later, ask=ask)
    one.refresh_from_db()
    assert one.is_done


def test_the_command_says_that_the_last_minute_follows(capsys: pytest.CaptureFixture[str]) -> None:
    now = int(timezone.now().timestamp()) // STEP * STEP
    values = [[now - back * STEP, str(100 - back)] for back in (5, 4, 3, 2)]
    source()
    with serving(lambda path: Answer(answered("matrix", {"metric": METRIC, "values": values}))) as served:
        call_command("backfill", "prod", served.url, "--days", "0.01")
    assert capsys.readouterr().out == "4 samples were imported. The worker imports the last minute in a minute.\n"


# -- who may read ------------------------------------------------------------------------------------------------------
@contextmanager
def mimir() -> Iterator[Served]:
    """One with tenants, and a gateway that wants a user: under /prometheus, by X-Scope-OrgID, 401 without."""

    def answer(path: str) -> Answer:
        headers = served.asked[-1][1]
        if not path.startswith("/prometheus/"):
            return Answer("404 page not found\n", status=404)
        if headers.get("X-Scope-OrgID") != "team-a" or headers.get("Authorization") != "Basic dXNlcjpwYXNz":
            return Answer("no org id\n", status=401)
        return Answer(answered("matrix" if path.endswith("_range") else "vector"))

    with serving(answer) as served:
        yield served


HEADERS = "X-Scope-OrgID: team-a\nAuthorization: Basic dXNlcjpwYXNz"


def test_a_tenant_of_a_mimir_is_let_in_by_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    source()
    with mimir() as served:
        with pytest.raises(CommandError, match="401; expected 200: it wants another token or header"):
            call_command("backfill", "prod", f"{served.url}/prometheus", "--days", "1")
        monkeypatch.setenv("PROMETHEUS_HEADERS", HEADERS)
        with pytest.raises(CommandError, match=r"http://mimir/prometheus or http://vmselect:8481/select/0/prometheus"):
            call_command("backfill", "prod", served.url, "--days", "1")
        with pytest.raises(CommandError, match="has no series of this engine"):
            call_command("backfill", "prod", f"{served.url}/prometheus", "--days", "1")
        call_command("addsource", "live", f"{served.url}/prometheus", "--selector", SELECTOR)
    assert Source.objects.get(name="live").headers == HEADERS
    monkeypatch.setenv("PROMETHEUS_TOKEN", "read\nme")
    with pytest.raises(CommandError, match=r"^PROMETHEUS_TOKEN: A token has printable ASCII characters only"):
        call_command("addsource", "other", "http://127.0.0.1:1", "--selector", SELECTOR)
    monkeypatch.setenv("PROMETHEUS_TOKEN", "read-me\n")
    monkeypatch.setenv("PROMETHEUS_HEADERS", "team-a")
    with pytest.raises(CommandError, match="PROMETHEUS_HEADERS: Line 1 is no header"):
        call_command("addsource", "other", "http://127.0.0.1:1", "--selector", SELECTOR)


@pytest.mark.parametrize(
    ("url", "told", "sent"),
    [
        ("http://mimir/prometheus", {}, ("token", HEADERS)),
        ("http://mimir/prometheus", {"token": "typed"}, ("typed", "")),
        ("http://elsewhere/prometheus", {}, ("", "")),
        ("https://mimir/prometheus", {}, ("", "")),
    ],
)
def test_history_of_the_server_that_a_source_is_read_from_needs_no_token_typed_again(
    url: str, told: dict[str, str], sent: tuple[str, str]
) -> None:
    live = source(url="http://mimir/prometheus", selector=SELECTOR, token="token", headers=HEADERS)
    one = wanted(live, url, **told)
    take_access(one)
    assert (one.token, one.headers) == sent
    text = source(name="text", url="http://mimir/metrics", token="engines")
    of_text = wanted(text, "http://mimir/prometheus")
    take_access(of_text)
    assert of_text.token == "", "what an engine's own text is read with is not its Prometheus'"


def test_the_page_sends_what_the_source_is_read_with(client: Client) -> None:
    client.force_login(User.objects.create_superuser("ada"))
    live = source(url="http://mimir/prometheus", selector=SELECTOR, headers=HEADERS)
    form = {"source": live.pk, "url": "http://mimir/prometheus", "selector": SELECTOR, "step_seconds": "60"}
    form |= {"start_at_0": "2026-01-01", "start_at_1": "00:00:00", "end_at_0": "2026-01-02", "end_at_1": "00:00:00"}
    page = client.get("/admin/dashboard/backfill/add/").content.decode()
    assert "Leave all of it empty where the source is read from the same server" in page
    client.post("/admin/dashboard/backfill/add/", form)
    assert Backfill.objects.get().headers == HEADERS


# -- names -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "name", ["vllm:prompt_tokens_total", "vllm_prompt_tokens", "vllm.prompt.tokens", "ray_vllm_prompt_tokens_total"]
)
def test_every_spelling_is_asked_for_also_the_dots_that_a_victoriametrics_keeps(name: str) -> None:
    assert re.fullmatch(names_pattern(["vllm_prompt_tokens"]), name)
