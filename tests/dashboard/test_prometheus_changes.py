"""A Prometheus that is read too often, has another address, or is asked by other matchers."""

import shutil

import pytest

from dashboard import valkey as names
from dashboard.models import Discovery, Source
from dashboard.selectors.source_states import describe
from dashboard.services.discovery import Changed, refresh
from dashboard.services.recording import record
from dashboard.services.source_trial import try_source
from dashboard.sources.discovery import Found
from tests.dashboard.live_prometheus import refreshed
from tests.dashboard.past import END, SELECTOR, START, STEP
from tests.dashboard.told import moment

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("valkey"),
    pytest.mark.skipif(shutil.which("promtool") is None, reason="apt-get install prometheus"),
]
TOO_OFTEN = "The Prometheus reads the engine more seldom than every 10 s"


def source(url: str, interval_seconds: int) -> Source:
    return Source.objects.create(
        name="prod", kind="auto", url=url, selector=SELECTOR, interval_seconds=interval_seconds
    )


def look(of: Source, second: int) -> Source:
    Source.objects.filter(pk=of.pk).update(due_at=moment(second))
    record(of.pk, now=moment(second), connection=names.client())
    of.refresh_from_db()
    return of


def found(url: str, job: str) -> Found:
    return Found(url, "gpu-7:8000", f'{{job="{job}",instance="gpu-7:8000"}}')


def test_one_that_is_asked_oftener_than_it_reads_the_engine_says_so(past: str) -> None:
    prod = look(source(past, 10), START + 20 * STEP + 3)
    assert TOO_OFTEN in prod.last_error
    assert TOO_OFTEN in describe(prod, moment(START + 20 * STEP + 4))
    trial = try_source(prod, now=moment(START + 20 * STEP + 3), connection=names.client())
    assert [TOO_OFTEN in problem for problem in trial.problems] == [True]


@pytest.mark.parametrize("interval_seconds", [60, 75, 600])
def test_one_that_is_asked_as_often_or_more_seldom_is_fine(past: str, interval_seconds: int) -> None:
    assert look(source(past, interval_seconds), START + 40 * STEP + 3).last_error == ""


def test_an_engine_that_has_just_begun_is_not_said_to_be_read_seldom(past: str) -> None:
    assert look(source(past, 10), START + STEP).last_error == ""


@pytest.mark.parametrize("change", [{"location": "/"}, {"selector": 'job=~"v.*"'}])
def test_engines_behind_another_address_or_other_matchers_stay_the_same_sources(
    past: str, change: dict[str, str]
) -> None:
    fleet = Discovery.objects.create(name="fleet", kind="prometheus", location=past, source_kind="vllm")
    assert refreshed(fleet, END) == Changed(come=2)
    before = list(Source.objects.order_by("name").values_list("pk", "name"))
    seven = look(Source.objects.get(name="fleet-gpu-7-8000"), END)
    assert seven.runs.exists()

    fleet.location += change.get("location", "")
    fleet.selector = change.get("selector", "")
    fleet.save()
    assert refreshed(fleet, END) == Changed(moved=2)
    assert list(Source.objects.order_by("name").values_list("pk", "name")) == before
    seven.refresh_from_db()
    assert (seven.url, seven.gone_at) == (fleet.location, None)
    assert fleet.selector in seven.selector
    assert not seven.runs.exists(), "what is read there first is a baseline"
    assert refreshed(fleet, END) == Changed()


def test_of_two_engines_with_one_name_neither_takes_the_place_of_one_that_went(past: str) -> None:
    fleet = Discovery.objects.create(name="fleet", kind="prometheus", location=past, source_kind="tierscope")
    gone = Source.objects.create(
        name="fleet-gpu-7-8000", kind="tierscope", url="http://gone:9090", selector=SELECTOR, discovery=fleet
    )
    twice = [found(past, job) for job in ("a", "b")]
    assert refresh(fleet.pk, now=fleet.due_at, read=lambda of, now: twice) == Changed(come=2, gone=1)
    gone.refresh_from_db()
    assert gone.gone_at is not None
