"""Read live from a Prometheus that has a known history: the engine's tokens, once, and without a gap."""

import shutil
from collections import Counter

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import timezone

from dashboard import valkey as names
from dashboard.models import Discovery, Series, Source
from dashboard.selectors.source_states import state_of
from dashboard.services.backfill import advance, plan
from dashboard.services.discovery import Changed
from dashboard.services.integrity import check
from dashboard.services.source_trial import try_source
from dashboard.services.sources import target_of
from tests.dashboard.live_prometheus import look, refreshed, source
from tests.dashboard.past import END, RESET_AT, SELECTOR, START, STEP, TRUTH
from tests.dashboard.told import moment, stored
from tests.stored import rows

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("valkey")]
needs_prometheus = pytest.mark.skipif(shutil.which("promtool") is None, reason="apt-get install prometheus")


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
