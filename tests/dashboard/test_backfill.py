"""History out of a real Prometheus: to the token, once, from wherever it stopped, and never over what was seen live."""

import json
import shutil
import time
from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client
from django.utils import timezone

from dashboard.models import Backfill, Chunk, Series, Source
from dashboard.services import backfill as service
from dashboard.services import chunks
from dashboard.services.backfill import advance, plan, stop, unfinished_ids
from dashboard.services.integrity import check
from dashboard.sources.http import ScrapeError
from dashboard.sources.prometheus import MAX_POINTS, Form, HistoryError, ask, check_selector
from dashboard.sources.target import Allowed, Tls
from dashboard.tasks import backfill_due
from tests.dashboard.past import END, NUM_STEPS, SELECTOR, START, STEP, TRUTH
from tests.dashboard.serving import Answer, serving
from tests.dashboard.told import stored
from tests.stored import rows

pytestmark = pytest.mark.django_db

needs_prometheus = pytest.mark.skipif(shutil.which("promtool") is None, reason="apt-get install prometheus")


def at(second: float) -> datetime:
    return datetime.fromtimestamp(second, tz=timezone.get_default_timezone())


def source(**told: object) -> Source:
    return Source.objects.create(**{"name": "prod", "kind": "vllm", "url": "http://gpu-7:8000/metrics", **told})


def wanted(of: Source, url: str, **told: object) -> Backfill:
    fields = {"selector": SELECTOR, "start_at": at(START), "end_at": at(END), "step_seconds": STEP}
    return Backfill(source=of, url=url, **{**fields, **told})


def imported(one: Backfill) -> Backfill:
    while not one.is_done:
        assert advance(one.pk, now=timezone.now()), Backfill.objects.get(pk=one.pk).last_error
        one.refresh_from_db()
    return one


@needs_prometheus
class TestRealPrometheus:
    def test_history_is_imported_to_the_token_across_pieces_and_a_restart(self, past: str) -> None:
        (one,) = plan(wanted(source(), past), now=timezone.now())
        imported(one)
        assert stored(3600) == stored(86400) == TRUTH
        assert set(Series.objects.values_list("engine", "model_name")) == {("prod/0", "m")}
        assert one.num_samples == 4 * (NUM_STEPS + 1)
        check(now=timezone.now())

    def test_every_step_is_booked_in_its_own_minute(self, past: str) -> None:
        (one,) = plan(wanted(source(), past), now=timezone.now())
        imported(one)
        starts = [(row.start_at, row.value) for row in rows(resolution=60, metric="prompt_tokens")]
        assert len(starts) == NUM_STEPS - 1
        assert {value for _, value in starts} == {100}
        assert starts[0][0] == START

    def test_a_second_time_nothing_is_left_to_import(self, past: str) -> None:
        prod = source()
        for one in plan(wanted(prod, past), now=timezone.now()):
            imported(one)
        assert plan(wanted(prod, past), now=timezone.now()) == []
        earlier = wanted(prod, past, start_at=at(START - 7200))
        (rest,) = plan(earlier, now=timezone.now())
        assert (rest.start_at, rest.end_at) == (at(START - 7200), at(START))
        assert stored(86400) == TRUTH

    def test_a_crash_at_any_point_neither_loses_nor_doubles(self, past: str, monkeypatch: pytest.MonkeyPatch) -> None:
        (one,) = plan(wanted(source(), past), now=timezone.now())
        real, turn = chunks.add, 0

        def sometimes(*args: object) -> None:
            nonlocal turn
            turn += 1
            real(*args)  # type: ignore[arg-type]
            if turn % 2:
                raise KeyboardInterrupt

        monkeypatch.setattr(chunks, "add", sometimes)
        now = timezone.now()
        for _ in range(20):
            now += timedelta(seconds=service.CLAIM_SECONDS + 1)
            try:
                advance(one.pk, now=now)
            except KeyboardInterrupt:
                continue
        assert turn >= 8
        one.refresh_from_db()
        assert one.is_done
        assert stored(86400) == TRUTH

    def test_what_was_seen_live_is_never_imported(self, past: str) -> None:
        prod = source(first_ok_at=at(START + 100 * STEP))
        (one,) = plan(wanted(prod, past), now=timezone.now())
        assert one.end_at == at(START + 100 * STEP)
        imported(one)
        assert stored(86400)["prompt_tokens", ""] == 100 * 100

    def test_detection_works_as_for_a_text(self, past: str) -> None:
        (one,) = plan(wanted(source(kind="auto"), past), now=timezone.now())
        imported(one)
        assert stored(86400) == TRUTH

    def test_another_engines_series_are_not_taken(self, past: str) -> None:
        (one,) = plan(wanted(source(), past, selector='{instance="gpu-8:8000"}'), now=timezone.now())
        imported(one)
        assert (one.num_samples, stored(86400)) == (0, {})
        assert len(plan(wanted(one.source, past), now=timezone.now())) == 1  # it covered nothing

    def test_the_command_imports_and_says_when_all_is_there(
        self, past: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        source()
        days = str((time.time() - START) / 86400)
        call_command("backfill", "prod", past, "--days", days, "--step", str(STEP))
        assert "samples were imported." in capsys.readouterr().out
        assert stored(86400)["prompt_tokens", ""] >= TRUTH["prompt_tokens", ""] - 100
        call_command("backfill", "prod", past, "--days", "0.05")
        assert "All of it is there already." in capsys.readouterr().out

    def test_the_worker_goes_on_by_itself_and_the_list_shows_how_far(self, past: str, client: Client) -> None:
        client.force_login(User.objects.create_superuser("ada"))
        prod = source()
        form = {
            "source": prod.pk,
            "url": past,
            "selector": SELECTOR,
            "step_seconds": "60",
            "start_at_0": f"{at(START):%Y-%m-%d}",
            "start_at_1": f"{at(START):%H:%M:%S}",
            "end_at_0": f"{at(END):%Y-%m-%d}",
            "end_at_1": f"{at(END):%H:%M:%S}",
        }
        page = "/admin/dashboard/backfill/"
        assert "The worker imports it" in client.post(f"{page}add/", form, follow=True).content.decode()
        assert 'value="0" aria-label="imported"' in client.get(page).content.decode()
        while Backfill.objects.get().cursor_at < at(END):
            assert backfill_due()
        assert 'value="100" aria-label="imported"' in client.get(page).content.decode()
        assert stored(86400) == TRUTH
        assert "Nothing was added" in client.post(f"{page}add/", form, follow=True).content.decode()
        assert client.get(f"{page}{Backfill.objects.get().pk}/delete/").status_code == 403


class Fake:
    """Answers as Prometheus would, for what a real one does not do."""

    def __init__(self, **values: list[list[object]]) -> None:
        self.values, self.asked = values, list[tuple[float, float]]()

    def __call__(self, url: str, form: Form, allowed: Allowed) -> str:
        start, end = (float(form.get(name, form.get("time", ""))) for name in ("start", "end"))
        self.asked.append((start, end))
        result = [
            {
                "metric": {"__name__": f"vllm:{name}_total"},
                "values": [v for v in pairs if start <= float(str(v[0])) <= end],
            }
            for name, pairs in self.values.items()
        ]
        return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})


def test_a_counter_that_pauses_over_a_piece_counts_what_it_grew_by() -> None:
    (one,) = plan(wanted(source(kind="vllm_old"), "http://prometheus:9090"), now=timezone.now())
    fake = Fake(prefix_cache_queries=[[START, "100"], [START + 60, "150"], [END, "400"]])
    while not one.is_done:
        assert advance(one.pk, now=timezone.now(), ask=fake)
        one.refresh_from_db()
    assert stored(86400)["prompt_tokens", ""] == 300


def test_odd_values_in_history_are_skipped_as_in_a_text() -> None:
    (one,) = plan(wanted(source(kind="vllm_old"), "http://prometheus:9090"), now=timezone.now())
    odd = [[START, "100"], [START + 60, "NaN"], [START + 120, "-1"], [START + 180, "+Inf"], [START + 240, "130"]]
    advance(one.pk, now=timezone.now(), ask=Fake(prefix_cache_queries=odd))
    assert stored(86400)["prompt_tokens", ""] == 30
    one.refresh_from_db()
    assert one.num_samples == 2


@pytest.mark.parametrize(
    "answer",
    ["", "[]", "null", '{"status":"error"}', '{"status":"success","data":{"resultType":"scalar","result":[]}}'],
)
def test_an_answer_that_is_no_history_is_told_and_asked_for_again_later(answer: str) -> None:
    (one,) = plan(wanted(source(), "http://prometheus:9090"), now=timezone.now())
    now = timezone.now()
    assert not advance(one.pk, now=now, ask=lambda url, form, allowed: answer)
    one.refresh_from_db()
    assert one.last_error.startswith("The answer is no history")
    assert unfinished_ids(now + timedelta(seconds=10)) == []
    assert unfinished_ids(now + timedelta(seconds=service.CLAIM_SECONDS)) == [one.pk]


def test_a_server_that_is_away_is_told(client: Client) -> None:
    (one,) = plan(wanted(source(), "http://127.0.0.1:1"), now=timezone.now())
    assert not advance(one.pk, now=timezone.now())
    one.refresh_from_db()
    assert "could not be read" in one.last_error


def test_a_stored_row_that_cannot_be_read_is_told_and_the_import_goes_on_without_it() -> None:
    (one,) = plan(wanted(source(kind="vllm_old"), "http://prometheus:9090"), now=timezone.now())
    now = timezone.now()
    counted = Fake(prefix_cache_queries=[[START, "1"], [START + 60, "5"]])
    assert advance(one.pk, now=now, ask=counted)
    Chunk.objects.filter(resolution=60).update(packed=b"torn")
    Backfill.objects.filter(pk=one.pk).update(cursor_at=at(START), state=[], claimed_until=now)
    assert not advance(one.pk, now=now, ask=counted)
    one.refresh_from_db()
    assert one.last_error.startswith("A row of dashboard_chunk cannot be read")
    Chunk.objects.filter(resolution=60).delete()
    assert advance(one.pk, now=now + timedelta(seconds=service.CLAIM_SECONDS), ask=counted)
    assert stored(60)["prompt_tokens", ""] == 4


def test_two_workers_do_not_import_the_same_piece() -> None:
    (one,) = plan(wanted(source(kind="vllm_old"), "http://prometheus:9090"), now=timezone.now())
    now = timezone.now()

    def meanwhile(url: str, form: Form, allowed: Allowed) -> str:
        assert not advance(one.pk, now=now, ask=Fake())
        return Fake(prefix_cache_queries=[[START, "1"], [START + 60, "5"]])(url, form, allowed)

    assert advance(one.pk, now=now, ask=meanwhile)
    assert stored(86400)["prompt_tokens", ""] == 4


def test_slow_servers_take_one_of_a_workers_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    plan(wanted(source(), "http://prometheus:9090"), now=timezone.now())
    num_pieces: list[int] = []
    monkeypatch.setattr(service, "advance", lambda pk, now: num_pieces.append(backfill_due()))
    assert backfill_due() == 0
    assert num_pieces == [0], "the second was not even asked for"


def test_an_import_that_fails_costs_the_others_no_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        plan(wanted(source(name=f"away-{number}"), "http://prometheus:9090"), now=timezone.now())
    (one,) = plan(wanted(source(kind="vllm_old"), "http://prometheus:9090"), now=timezone.now())
    fake = Fake(prefix_cache_queries=[[START, "1"]])
    monkeypatch.setattr(service, "advance", lambda pk, now: pk == one.pk and advance(pk, now=now, ask=fake))
    assert backfill_due()


def test_those_that_failed_are_tried_after_the_others() -> None:
    (failed,) = plan(wanted(source(name="away"), "http://127.0.0.1:1"), now=timezone.now())
    (one,) = plan(wanted(source(), "http://prometheus:9090"), now=timezone.now())
    now = timezone.now()
    assert not advance(failed.pk, now=now)
    assert unfinished_ids(now + timedelta(seconds=service.CLAIM_SECONDS)) == [one.pk, failed.pk]


@pytest.mark.parametrize("moved_by", [-3_600, MAX_POINTS * STEP, 1_000_000_000])
def test_samples_of_times_that_nobody_asked_for_are_not_imported(moved_by: int) -> None:
    """Of a cache, say: they would be counted where they are, and once more with the piece that asks for them."""
    (one,) = plan(wanted(source(kind="vllm_old"), "http://prometheus:9090"), now=timezone.now())
    begin = START + moved_by
    elsewhere = Fake(prefix_cache_queries=[[begin, "100"], [begin + STEP, "150"]])
    asked = {"start": str(begin), "end": str(begin + STEP)}
    assert not advance(one.pk, now=timezone.now(), ask=lambda url, form, allowed: elsewhere(url, asked, allowed))
    one.refresh_from_db()
    assert "samples of other times" in one.last_error
    assert stored(86400) == {}


def test_one_that_is_stopped_keeps_what_it_has_and_leaves_the_rest_free() -> None:
    prod = source(kind="vllm_old")
    (one,) = plan(wanted(prod, "http://prometheus:9090"), now=timezone.now())
    fake = Fake(prefix_cache_queries=[[START + 60 * step, str(step)] for step in range(NUM_STEPS)])
    advance(one.pk, now=timezone.now(), ask=fake)
    one.refresh_from_db()
    stop(one)
    one.refresh_from_db()
    assert one.is_done
    (rest,) = plan(wanted(prod, "http://prometheus:9090"), now=timezone.now())
    assert (rest.start_at, rest.end_at) == (one.end_at, at(END))


def test_the_list_says_what_was_stopped(client: Client) -> None:
    client.force_login(User.objects.create_superuser("ada"))
    (one,) = plan(wanted(source(), "http://prometheus:9090"), now=timezone.now())
    form = {"action": "stop_them", "_selected_action": one.pk}
    page = client.post("/admin/dashboard/backfill/", form, follow=True).content.decode()
    assert "1 stopped; what they imported stays." in page
    assert "stopped before anything" in page
    assert 'value="100"' not in page


def test_a_token_is_sent_to_the_prometheus() -> None:
    seen: list[Allowed] = []

    def listen(url: str, form: Form, allowed: Allowed) -> str:
        seen.append(allowed)
        return Fake()(url, form, allowed)

    (one,) = plan(wanted(source(token="engines"), "http://prometheus:9090", token="history"), now=timezone.now())
    advance(one.pk, now=timezone.now(), ask=listen)
    assert seen[0].headers == {"Authorization": "Bearer history"}
    assert "history" not in repr(seen[0])


@pytest.mark.parametrize(
    "text",
    [
        *("", "{}", "up", '{__name__="up"}', "{instance=gpu}", '{a="b"} or up', '{a="b"}[5m]', '{a="b" c="d"}'),
        *('a=""  ' * 60 + "!", 'a="" , ' * 60 + "!"),  # said at once, not after trying every way to share the blanks
    ],
)
def test_a_selector_chooses_by_labels_only(text: str) -> None:
    with pytest.raises(HistoryError, match="by their labels"):
        check_selector(text)


@pytest.mark.parametrize("text", ['{instance="a"}', ' { job = "v", pod=~"x.*" , } ', 'instance="a\\"b"'])
def test_a_selector_may_be_typed_with_or_without_braces(text: str) -> None:
    assert check_selector(text)


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        ({"url": "prometheus:9090"}, "Enter an address"),
        ({"selector": "up"}, "by their labels"),
        ({"end_at": at(START - 1)}, "The end is not after the start"),
        ({"step_seconds": 5}, "greater than or equal to 10"),
    ],
)
def test_what_cannot_be_imported_is_refused(told: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValidationError, match=sentence):
        plan(wanted(source(), **{"url": "http://prometheus:9090", **told}), now=timezone.now())  # type: ignore[arg-type]


def test_the_form_says_what_is_wrong(client: Client) -> None:
    client.force_login(User.objects.create_superuser("ada"))
    form = {"source": source().pk, "url": "prometheus", "selector": "up", "step_seconds": "60"}
    form |= {"start_at_0": "2026-01-01", "start_at_1": "00:00:00", "end_at_0": "2026-01-02", "end_at_1": "00:00:00"}
    assert "Enter an address" in client.post("/admin/dashboard/backfill/add/", form).content.decode()
    assert not Backfill.objects.exists()


def test_the_command_names_what_is_wrong() -> None:
    with pytest.raises(CommandError, match="There is no source “prod”"):
        call_command("backfill", "prod", "http://prometheus:9090")
    source()
    with pytest.raises(CommandError, match=r"^127.0.0.1 could not be read: Connection refused. Nothing was stored.$"):
        call_command("backfill", "prod", "http://127.0.0.1:1", "--days", "1")
    assert not Backfill.objects.exists()


def test_the_command_refuses_an_address_that_is_no_prometheus() -> None:
    source()
    with serving(lambda path: Answer("<html></html>")) as server, pytest.raises(CommandError, match="is no Prometheus"):
        call_command("backfill", "prod", server.url, "--days", "1")
    assert not Backfill.objects.exists()


def test_the_command_says_what_to_check_where_nothing_matches() -> None:
    source()
    empty = '{"status": "success", "data": {"resultType": "matrix", "result": []}}'
    wrong = '{instance="gpu-8:8000"}'
    with serving(lambda path: Answer(empty)) as server, pytest.raises(CommandError) as error:
        call_command("backfill", "prod", server.url, "--days", "0.05", "--selector", wrong)
    assert str(error.value).startswith("Nothing was imported: ")
    assert all(hint in str(error.value) for hint in (wrong, "--selector", "--days"))


def test_asking_a_server_that_redirects_is_an_error() -> None:
    with pytest.raises(ScrapeError):
        ask("http://127.0.0.1:1/api", {}, Allowed({}, Tls()))
