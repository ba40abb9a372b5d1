"""Read live from a Prometheus: the same tokens as from the engine itself, once, and in words where there are none."""

import json
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from dashboard import valkey as names
from dashboard.models import Discovery, Series, Source
from dashboard.selectors.source_states import state_of
from dashboard.services.backfill import advance, plan
from dashboard.services.discovery import Changed, refresh
from dashboard.services.integrity import check
from dashboard.services.recording import record
from dashboard.services.source_trial import try_source
from dashboard.services.sources import target_of
from dashboard.sources import http
from dashboard.sources.exposition import ExpositionError
from dashboard.sources.http import ScrapeError
from dashboard.sources.prometheus_query import Asking, answer_of
from dashboard.sources.target import Allowed, Tls
from tests.dashboard.past import END, RESET_AT, SELECTOR, START, STEP, TRUTH
from tests.dashboard.serving import Answer, serving
from tests.dashboard.told import moment, stored
from tests.e2e.prometheus import Prometheus
from tests.stored import rows

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("valkey")]

needs_prometheus = pytest.mark.skipif(shutil.which("promtool") is None, reason="apt-get install prometheus")
TEXT = (Path(__file__).parent / "expositions" / "vllm-0.32.0-cpu-after.txt").read_text()


def source(url: str, selector: str = SELECTOR, **told: object) -> Source:
    """Read as often as its engine is, every minute."""
    usual = {"name": "prod", "kind": "auto", "url": url, "selector": selector, "interval_seconds": STEP}
    return Source.objects.create(**usual | told)


def look(of: Source, now: datetime) -> Source:
    """As the worker does when its time has come."""
    Source.objects.filter(pk=of.pk).update(due_at=now)
    record(of.pk, now=now, connection=names.client())
    of.refresh_from_db()
    return of


def scrapes() -> list[int]:
    """When it was seen, of the finest resolution."""
    return [row.start_at for row in rows(metric="scrapes", resolution=10) for _ in range(row.value)]


@needs_prometheus
class TestPast:
    """What one says that has a known history, asked for any moment of it."""

    def test_increases_are_booked_at_the_times_of_its_samples(self, past: str) -> None:
        prod = look(source(past), moment(START + 10 * STEP + 17))
        assert (prod.last_error, stored(10)) == ("", Counter())
        assert prod.first_ok_at == moment(START + 10 * STEP)
        look(prod, moment(START + 13 * STEP + 29))
        assert stored(10) == {
            ("prompt_tokens", ""): 300,
            ("computed_tokens", ""): 150,
            ("hit_tokens", "gpu"): 90,
            ("hit_tokens", "cpu"): 60,
        }
        assert scrapes() == [START + 10 * STEP - 30, START + 13 * STEP - 30]
        assert set(Series.objects.values_list("engine", "model_name")) == {("prod/0", "m")}
        check(now=timezone.now())

    def test_a_sample_that_was_seen_before_is_no_new_reading(self, past: str) -> None:
        prod = source(past)
        for seconds in (0, 10, 20, 59):
            look(prod, moment(START + 10 * STEP + seconds))
            assert prod.last_ok_at == moment(START + 10 * STEP + seconds)
            assert state_of(prod, prod.last_ok_at) == "up"
        assert len(scrapes()) == 1

    def test_a_restart_is_counted_as_it_is_of_a_text(self, past: str) -> None:
        prod = source(past)
        for step in range(RESET_AT - 3, RESET_AT + 4):
            look(prod, moment(START + step * STEP))
        assert stored(86400)["prompt_tokens", ""] == 3 * 100 + 2 * 100  # it tells 0 one step after the restart

    def test_one_that_is_read_no_more_is_no_living_engine(self, past: str) -> None:
        prod = look(source(past), moment(END))
        look(prod, moment(END + 140))
        assert (prod.last_error, len(scrapes())) == ("", 1)
        look(prod, moment(END + 200))
        assert "is more than 3 minutes old: it reads it no more, or this machine's clock is ahead." in prod.last_error
        assert state_of(prod, moment(END + 140 + 3 * STEP + 1)) == "failing"
        look(prod, moment(END + 400))
        assert prod.last_error.startswith('The Prometheus has no series where {instance="gpu-7:8000"} now: ')
        assert len(scrapes()) == 1

    @pytest.mark.parametrize(
        ("selector", "sentence"),
        [
            ('{instance="gpu-8:8000"}', 'has no series where {instance="gpu-8:8000"} now'),
            (
                '{job="vllm"}',
                '2 engines have series where {job="vllm"}: instance="gpu-7:8000" and instance="gpu-9:8000". Choose one '
                "of them by its labels, or let a discovery make a source of each.",
            ),
        ],
    )
    def test_matchers_that_choose_none_or_two_engines_are_told_in_words(
        self, past: str, selector: str, sentence: str
    ) -> None:
        prod = look(source(past, selector), moment(END))
        assert sentence in prod.last_error
        assert not Series.objects.exists()

    def test_history_and_live_readings_join_without_a_gap_and_without_counting_twice(self, past: str) -> None:
        """The step of the import is none of the scrapes'."""
        prod = source(past)
        for step in (100, RESET_AT, RESET_AT + 1, 400):
            look(prod, moment(START + step * STEP + 17))
        live = stored(86400)["prompt_tokens", ""]
        assert live == TRUTH["prompt_tokens", ""] - 100 * 100
        earlier = {"start_at": moment(START), "end_at": moment(END), "step_seconds": 50, "url": past}
        (one,) = plan(prod.backfills.model(source=prod, selector=SELECTOR, **earlier), now=moment(END))
        assert one.end_at == moment(START + 100 * STEP)
        imported(one)
        assert stored(86400) == TRUTH
        check(now=timezone.now())

    def test_imports_before_the_first_live_reading_join_it_and_each_other(self, past: str) -> None:
        prod = source(past)
        earlier = {"start_at": moment(START), "end_at": moment(END), "step_seconds": 70, "url": past}
        wanted = prod.backfills.model(source=prod, selector=SELECTOR, **earlier)
        for number in (33, 61):
            (one,) = plan(wanted, now=moment(START + number * STEP + 25))
            imported(one)
        look(prod, moment(START + 100 * STEP + 17))
        wanted.source = prod
        (rest,) = plan(wanted, now=moment(END))
        imported(rest)
        for step in (RESET_AT, RESET_AT + 1, 400):
            look(prod, moment(START + step * STEP + 17))
        # The first step of an import by 70 s is 60 s of history behind where it begins, or none.
        first = -(-START // 70) * 70
        assert stored(86400)["prompt_tokens", ""] == TRUTH["prompt_tokens", ""] - 100 * ((first - START) // STEP)
        assert plan(wanted, now=moment(END)) == []

    def test_a_trial_reads_it_and_records_nothing(self, past: str) -> None:
        trial = try_source(source(past), now=moment(START + 10 * STEP), connection=names.client())
        assert (trial.kind, trial.problems) == ("vLLM 0.32 or newer", ())
        assert trial.engines[0]["hit_tokens"]["gpu"] == 300
        assert not Series.objects.exists()

    def test_its_engines_are_found_come_and_go(self, past: str) -> None:
        fleet = Discovery.objects.create(
            name="fleet", kind="prometheus", location=past, token="theirs", source_kind="vllm", interval_seconds=60
        )
        assert refreshed(fleet, END) == Changed(come=2)
        (seven, nine) = Source.objects.order_by("name")
        assert (seven.name, seven.selector) == ("fleet-gpu-7-8000", '{job="vllm",instance="gpu-7:8000"}')
        assert (nine.url, nine.kind, nine.interval_seconds) == (past, "vllm", 60)
        assert target_of(nine).headers["Authorization"] == "Bearer theirs"
        assert look(nine, moment(END)).last_error == ""
        assert refreshed(fleet, END + 3000) == Changed()  # down, which is a source that fails
        nine.url = "http://elsewhere:9090"
        assert "Authorization" not in target_of(nine).headers
        Source.objects.filter(pk=nine.pk).update(name="of-another-name", selector='{instance="elsewhere"}')
        assert refreshed(fleet, END) == Changed(come=1, gone=1)

    def test_a_list_of_a_prometheus_without_engines_says_so_and_changes_nothing(self, past: str) -> None:
        fleet = Discovery.objects.create(name="fleet", kind="prometheus", location=past, selector='job=~"v.*"')
        assert refreshed(fleet, END) == Changed(come=2)
        assert refreshed(fleet, END + 3700) is None
        fleet.refresh_from_db()
        told = 'The Prometheus had no engine\'s cache counters where {job=~"v.*"} within the last hour.'
        assert fleet.last_error == told
        assert not Source.objects.exclude(gone_at=None).exists()

    def test_another_tierscope_is_listed_where_that_is_asked_for(self, past: str) -> None:
        fleet = Discovery.objects.create(name="fleet", kind="prometheus", location=past, source_kind="tierscope")
        assert refreshed(fleet, END) is None  # it only has a name of it, no counters
        fleet.refresh_from_db()
        assert "no engine's cache counters" in fleet.last_error

    def test_the_command_adds_one_and_says_what_is_wrong_with_it(
        self, past: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        call_command("addsource", "prod", past, "--selector", SELECTOR)
        told = capsys.readouterr().out
        assert told.startswith("prod is read from a Prometheus every 10 s. Nothing can be read there yet: ")
        assert "no series where" in told  # its history ends before now
        with pytest.raises(CommandError, match="by their labels"):
            call_command("addsource", "other", past, "--selector", "up")


def imported(one: object) -> None:
    while not one.is_done:  # type: ignore[attr-defined]
        assert advance(one.pk, now=timezone.now())  # type: ignore[attr-defined]
        one.refresh_from_db()  # type: ignore[attr-defined]


def refreshed(found_by: Discovery, second: int) -> Changed | None:
    Discovery.objects.filter(pk=found_by.pk).update(due_at=moment(second))
    return refresh(found_by.pk, now=moment(second))


class Engine:
    """vLLM's own text, with counters that grow."""

    GROWING = {
        'vllm:prompt_tokens_total{engine="0",model_name="smollm2"}': 100,
        'vllm:prompt_tokens_by_source_total{engine="0",model_name="smollm2",source="local_compute"}': 50,
        'vllm:prompt_tokens_cached_by_source_total{engine="0",model_name="smollm2",source="device"}': 30,
        'vllm:prompt_tokens_cached_by_source_total{engine="0",model_name="smollm2",source="host"}': 20,
        'vllm:generation_tokens_total{engine="0",model_name="smollm2"}': 7,
    }

    def __init__(self) -> None:
        self.lines = TEXT.splitlines()
        self.grow(0)

    def grow(self, requests: int) -> None:
        self._count(lambda name, value: value + requests * self.GROWING[name])

    def restart(self) -> None:
        self._count(lambda name, value: 0)

    def _count(self, new: Callable[[str, int], int]) -> None:
        for number, line in enumerate(self.lines):
            name, _, value = line.rpartition(" ")
            if name in self.GROWING:
                self.lines[number] = f"{name} {new(name, int(float(value)))}"
        self.prompt_tokens = next(int(float(line.rpartition(" ")[2])) for line in self.lines if self._is_prompt(line))

    def _is_prompt(self, line: str) -> bool:
        return line.startswith("vllm:prompt_tokens_total{")

    def text(self, path: str) -> Answer:
        return Answer("\n".join(self.lines) + "\n")


@pytest.mark.slow
@needs_prometheus
def test_a_running_prometheus_tells_the_tokens_that_the_engine_tells(tmp_path: Path) -> None:
    """Also over a restart; and when the engine or the Prometheus ends, both are told apart, and nothing is booked."""
    engine = Engine()
    with ExitStack() as theirs:
        served = theirs.enter_context(serving(engine.text))
        instance = served.url.removeprefix("http://")
        with Prometheus(instance, tmp_path) as prometheus:
            direct = Source.objects.create(name="direct", url=f"{served.url}/metrics")
            live = source(prometheus.url, f'{{instance="{instance}"}}', name="live")
            for more in (0, 3, 2, None, 4):
                engine.restart() if more is None else engine.grow(more)
                until(lambda: values(prometheus, "vllm:prompt_tokens_total") == [engine.prompt_tokens])
                look(direct, timezone.now())
                look(live, timezone.now())
            assert (direct.last_error, live.last_error) == ("", "")
            assert sums(direct) == sums(live)
            assert sums(live)["prompt_tokens", "", ""] == 900
            theirs.close()
            until(lambda: values(prometheus, "up") == [0])
            look(live, timezone.now())
            assert (
                live.last_error
                == f'The Prometheus cannot read the engine itself: up is 0 where {{instance="{instance}"}}.'
            )
    look(live, timezone.now())
    assert "Connection refused" in live.last_error
    assert sums(live)["prompt_tokens", "", ""] == 900


def values(prometheus: Prometheus, name: str) -> list[float]:
    return [float(each["value"][1]) for each in prometheus.query(name)]


def until(is_so: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def sums(of: Source) -> Counter[tuple[str, str, str]]:
    """Of every counter, histograms too; not how often it was looked at, and no gauges."""
    gauges = ("scrapes", "capacity_tokens", "capacity_bytes", "resident_tokens", "used_bytes", "up")
    found: Counter[tuple[str, str, str]] = Counter()
    for row in rows(resolution=86400, source_id=of.pk):
        if row.metric not in gauges:
            found[row.metric, row.cache_tier, row.detail] += row.value
    return +found


# -- what a server may answer ------------------------------------------------------------------------------------------
def vector(*series: tuple[dict[str, str], str], **more: object) -> str:
    result = [{"metric": metric, "value": [0, value]} for metric, value in series]
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}, **more})


ERROR = json.dumps({"status": "error", "errorType": "bad_data", "error": "parse error:\n unexpected <EOF>"})


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (Answer(ERROR, status=400), "127.0.0.1 answered 400: parse error: unexpected <EOF>."),
        (Answer(ERROR.replace("<EOF>", r"\u0000"), status=400), "answered 400: parse error: unexpected."),
        (Answer("no such org", status=401), "answered 401; expected 200: it wants another token or header."),
        (Answer("<html>", status=404), "127.0.0.1 answered 404. What answers there is no Prometheus; expected the"),
        (
            Answer('{"error": {"message": "no"}}', status=405),
            "127.0.0.1 answered 405. What answers there is no Prometheus",
        ),
        (Answer("<html>"), "What answers there is no Prometheus"),
        (Answer("", {"Location": "/login"}, 302), "with a redirect; give the address of the server itself."),
        (Answer('{"status":"success","data":{"resultType":"matrix","result":[]}}'), "is no Prometheus"),
        (Answer("[" * 100_000), "is no Prometheus"),
        (Answer(vector(({"__name__": "up"}, "1"))), "but no cache counters of an engine that is known here."),
        (Answer(vector(({"__name__": "up"}, "0"))), "cannot read the engine itself: up is 0"),
        (Answer(vector()), "has no series where"),
    ],
    ids=lambda told: told if isinstance(told, str) else "",
)
def test_what_is_no_answer_of_a_prometheus_is_told_in_a_sentence(answer: Answer, sentence: str) -> None:
    with serving(lambda path: answer) as served:
        prod = look(source(served.url), timezone.now())
    assert sentence in prod.last_error
    assert "\n" not in prod.last_error


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "-1e300"])
def test_a_time_that_is_none_is_told(value: str) -> None:
    metric = {"__name__": "vllm:prompt_tokens_cached_by_source_total", "source": "device"}
    answers = [vector((metric, "7")), vector(({}, value))]
    with serving(lambda path: Answer(answers[len(served.asked) - 1])) as served:
        prod = look(source(served.url), timezone.now())
    assert "does not say when" in prod.last_error


LEAVES = st.none() | st.booleans() | st.integers() | st.just(10**400) | st.floats() | st.text(max_size=5)
ODD = st.recursive(
    LEAVES, lambda odd: st.lists(odd, max_size=3) | st.dictionaries(st.text(max_size=5), odd, max_size=3)
)
SERIES = st.fixed_dictionaries({"metric": ODD | st.dictionaries(st.text(max_size=5), ODD)}, optional={"value": ODD})
DATA = st.fixed_dictionaries({"resultType": st.just("vector") | ODD, "result": st.lists(SERIES) | ODD})


@given(ODD | st.fixed_dictionaries({"status": st.just("success"), "data": DATA}, optional={"warnings": ODD}))
def test_any_json_is_an_answer_or_a_sentence(told: object) -> None:
    with suppress(ExpositionError):
        assert all(isinstance(series.value, float) for series in answer_of(json.dumps(told)).series)


def test_the_two_questions_of_a_look_have_the_time_of_one_scrape() -> None:
    """So that a claim outlasts the looks that one worker takes together."""
    now, seconds = timezone.now(), iter([0.0, 0.0, http.TOTAL_SECONDS])
    with serving(lambda path: Answer(vector())) as served:
        server = Asking(served.url, now, Allowed({}, Tls()), clock=lambda: next(seconds))
        assert server.ask("up").series == ()
        with pytest.raises(ScrapeError, match="was still answering after 10 s"):
            server.ask("up")


@pytest.fixture
def two_replicas() -> Iterator[str]:
    """A Thanos that does not leave one of two Prometheus' copies out, and a part of which did not answer."""
    metric = {"__name__": "vllm:prompt_tokens_total", "instance": "gpu-7:8000", "engine": "0"}
    told = vector(*(({**metric, "replica": replica}, "5") for replica in "ab"))
    with serving(lambda path: Answer(told)) as served:
        yield served.url


def test_two_copies_of_a_series_are_not_added_up(two_replicas: str) -> None:
    prod = look(source(two_replicas), timezone.now())
    assert '2 engines have series where {instance="gpu-7:8000"}: replica="a" and replica="b".' in prod.last_error


def test_a_part_of_a_list_is_no_list() -> None:
    """A Thanos tells what its other stores have; the engines of the one that is away are not gone."""
    seven, nine = ({"job": "vllm", "instance": f"gpu-{number}:8000"} for number in (7, 9))
    answers = [
        vector((seven, "1"), (nine, "1")),
        vector((seven, "1"), warnings=["no store matched"]),
        vector((seven, "1"), isPartial=True),
    ]
    with serving(lambda path: Answer(answers[len(served.asked) - 1])) as served:
        fleet = Discovery.objects.create(name="fleet", kind="prometheus", location=served.url)
        assert refreshed(fleet, END) == Changed(come=2)
        for words in ("warns: no store matched.", "warns: a part of it did not answer."):
            assert refreshed(fleet, END + 60) is None
            fleet.refresh_from_db()
            assert words in fleet.last_error
    assert not Source.objects.exclude(gone_at=None).exists()


def test_odd_values_are_skipped_as_of_a_text_and_both_questions_are_about_one_moment() -> None:
    now = timezone.now()
    metrics = [
        ({"__name__": "vllm:prompt_tokens_cached_by_source_total", "source": source}, value)
        for source, value in (("device", "7"), ("host", "NaN"), ("disk", "+Inf"))
    ]
    answers = [vector(*metrics), vector(({}, f"{now.timestamp() - 3}"))]
    with serving(lambda path: Answer(answers[len(served.asked) - 1])) as served:
        prod = look(source(f"{served.url}/prometheus/", token="secret-token"), now)
    assert "which is no count" in prod.last_error
    asked = [parse_qs(body) for body in served.bodies]
    assert [path for path, _ in served.asked] == ["/prometheus/api/v1/query"] * 2
    assert [headers["Authorization"] for _, headers in served.asked] == ["Bearer secret-token"] * 2
    assert {one["time"][0] for one in asked} == {f"{now.timestamp():.3f}"}
    counter = '{__name__="vllm:prompt_tokens_cached_by_source_total",instance="gpu-7:8000"}'
    assert asked[1]["query"][0].startswith(f"timestamp({counter}) or label_replace((count_over_time({counter}[600s])")


@pytest.mark.parametrize("ahead_seconds", [0, 40])
def test_a_prometheus_whose_clock_is_ahead_books_nothing_in_the_future(ahead_seconds: int) -> None:
    now = timezone.now()
    sampled_at = now + timedelta(seconds=ahead_seconds)
    metric = {"__name__": "vllm:prompt_tokens_cached_by_source_total", "source": "device"}
    answers = [vector((metric, "7")), vector(({}, f"{sampled_at.timestamp()}"))]
    with serving(lambda path: Answer(answers[len(served.asked) - 1])) as served:
        prod = look(source(served.url), now)
    assert prod.first_ok_at is not None
    assert prod.first_ok_at <= now + timedelta(milliseconds=1)


# -- typing it ---------------------------------------------------------------------------------------------------------
def add(client: Client, **typed: str) -> str:
    form = {"name": "prod", "kind": "auto", "url": "http://127.0.0.1:1", "interval_seconds": "10", "is_enabled": "on"}
    return client.post("/admin/dashboard/source/add/", {**form, **typed}, follow=True).content.decode()


def test_the_form_takes_the_matchers_and_refuses_what_are_none(admin: Client) -> None:
    assert "Enter which series are this engine&#x27;s by their labels" in add(admin, selector="up")
    assert not Source.objects.exists()
    add(admin, selector=SELECTOR)
    assert target_of(Source.objects.get()).selector == SELECTOR


def test_other_matchers_are_another_engine_whose_first_reading_is_a_baseline(admin: Client) -> None:
    prod = source("http://127.0.0.1:1", kind="auto")
    prod.runs.create(engine="prod/0", read_at=timezone.now())
    form = {"name": "prod", "kind": "auto", "url": prod.url, "interval_seconds": "10", "is_enabled": "on"}
    admin.post(f"/admin/dashboard/source/{prod.pk}/change/", {**form, "selector": '{instance="gpu-9:8000"}'})
    assert not prod.runs.exists()


def test_a_discovery_has_matchers_for_a_prometheus_only(admin: Client) -> None:
    page = "/admin/dashboard/discovery/add/"
    form = {"name": "fleet", "kind": "http", "location": "http://127.0.0.1:1", "selector": '{job="vllm"}'}
    form |= {"source_kind": "auto", "interval_seconds": "10", "refresh_seconds": "60", "is_enabled": "on"}
    assert "only a Prometheus has series" in admin.post(page, form).content.decode()
    assert "by their labels" in admin.post(page, {**form, "kind": "prometheus", "selector": "up"}).content.decode()
    admin.post(page, {**form, "kind": "prometheus"})
    assert Discovery.objects.get().selector == '{job="vllm"}'
