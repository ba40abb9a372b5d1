"""What a server may answer that is asked as a Prometheus: tokens, or a sentence."""

import json
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from urllib.parse import parse_qs

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from dashboard.models import Discovery, Source
from dashboard.services.discovery import Changed
from dashboard.sources import http
from dashboard.sources.exposition import ExpositionError
from dashboard.sources.http import ScrapeError
from dashboard.sources.prometheus_query import Asking, answer_of
from dashboard.sources.target import Allowed, Tls
from tests.dashboard.live_prometheus import look, refreshed, source
from tests.dashboard.past import END
from tests.dashboard.serving import Answer, serving

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("valkey")]


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
