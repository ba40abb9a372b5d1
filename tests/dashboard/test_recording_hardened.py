"""Watched engines and clocks that misbehave: each with an outcome that a person can trust; and fleets side by side."""

import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta

import pytest
from django.db import DataError
from django.utils import timezone

from dashboard import valkey
from dashboard.models import Series, Source
from dashboard.services import recording
from dashboard.services.integrity import check
from dashboard.services.recording import MAX_FETCHES, due_source_ids, record, record_many
from dashboard.sources.http import ScrapeError
from dashboard.sources.target import Target
from tests.dashboard.told import Engine, moment, stored
from tests.stored import rows

pytestmark = pytest.mark.usefixtures("valkey", "db")

START = 1_800_000_000


def watched(name: str = "prod", **told: object) -> Source:
    return Source.objects.create(**{"name": name, "kind": "auto", "url": f"http://{name}/metrics", **told})


def scrape(source: Source, seconds: float, text: str) -> bool:
    Source.objects.filter(pk=source.pk).update(due_at=moment(seconds))
    return record(source.pk, now=moment(seconds), connection=valkey.client(), fetch_text=lambda target: text)


def vllm(prompt: float | str, model: str = "m", engine: str = "0") -> str:
    return f'vllm:prefix_cache_queries_total{{engine="{engine}",model_name="{model}"}} {prompt}\n'


class TestClocks:
    def test_a_clock_that_is_set_back_costs_no_token_and_no_waiting(self) -> None:
        source = watched()
        scrape(source, START, vllm(100))
        source.refresh_from_db()
        assert due_source_ids(moment(START - 3600)) == [source.pk]
        scrape(source, START - 3600, vllm(130))
        scrape(source, START - 3590, vllm(150))
        assert stored(10)["prompt_tokens", ""] == 50
        assert {row.metric for row in rows(resolution=10) if row.start_at >= START} <= {"scrapes"}

    def test_a_clock_that_jumps_ahead_leaves_a_gap_and_books_the_increase_once(self) -> None:
        source = watched()
        for second, value in ((0, 100), (7200, 160), (7210, 170)):
            scrape(source, START + second, vllm(value))
        assert stored(10)["prompt_tokens", ""] == 70
        check(now=moment(START + 9000))

    def test_a_claim_is_not_taken_for_a_clock_that_was_set_back(self) -> None:
        source = watched(interval_seconds=3600, due_at=moment(START + 3600))
        assert due_source_ids(moment(START)) == []
        assert source.pk


class TestCounters:
    def test_a_reset_counts_what_came_after_it(self) -> None:
        source = watched()
        for second, value in enumerate((1000, 1100, 40, 60)):
            scrape(source, START + 10 * second, vllm(value))
        assert stored(10)["prompt_tokens", ""] == 100 + 40 + 20

    def test_a_model_that_is_served_under_a_new_name_is_not_counted_again(self) -> None:
        source = watched()
        scrape(source, START, vllm(1_000_000, "old-name"))
        scrape(source, START + 10, vllm(1_000_050, "new-name"))
        scrape(source, START + 20, vllm(1_000_060, "old-name"))
        assert stored(10)["prompt_tokens", ""] == 60
        told = rows(resolution=10, metric="prompt_tokens")
        assert [(row.model_name, row.value) for row in told] == [("new-name", 50), ("old-name", 10)]

    def test_a_second_model_that_appears_is_counted_from_zero(self) -> None:
        source = watched()
        scrape(source, START, vllm(1000, "one"))
        scrape(source, START + 10, vllm(1000, "one") + vllm(70, "two"))
        assert stored(10)["prompt_tokens", ""] == 70

    def test_an_engine_label_that_changes_starts_with_a_baseline(self) -> None:
        source = watched()
        scrape(source, START, vllm(1000, engine="0"))
        scrape(source, START + 10, vllm(1010, engine="node-7"))
        scrape(source, START + 20, vllm(1015, engine="node-7"))
        assert stored(10)["prompt_tokens", ""] == 5

    def test_a_label_that_is_added_and_means_nothing_here_changes_nothing(self) -> None:
        source = watched()
        scrape(source, START, vllm(1000))
        scrape(source, START + 10, vllm(1010).replace("engine=", 'pod="p",engine='))
        assert stored(10)["prompt_tokens", ""] == 10

    def test_names_that_change_their_spelling_go_on(self) -> None:
        source = watched()
        scrape(source, START, vllm(1000))
        scrape(source, START + 10, vllm(1010).replace("vllm:", "ray_vllm_").replace("_total", ""))
        assert stored(10)["prompt_tokens", ""] == 10

    @pytest.mark.parametrize("odd", ["NaN", "+Inf", "-Inf", "-5", "1e300", "9" * 400, "what"])
    def test_an_odd_value_is_told_and_the_next_good_one_counts_all(self, odd: str) -> None:
        source = watched()
        other = 'vllm:prefix_cache_hits_total{engine="0",model_name="m"} 1\n'
        values: list[float | str] = [100, odd, 130]
        for second, value in enumerate(values):
            scrape(source, START + 10 * second, vllm(value) + other)
            source.refresh_from_db()
            assert bool(source.last_error) == (value == odd)
            assert source.last_ok_at == moment(START + 10 * second)
        assert stored(10)["prompt_tokens", ""] == 30

    def test_a_part_of_a_counter_that_cannot_be_read_does_not_look_like_a_restart(self) -> None:
        source = watched()
        for second, value in enumerate(("40", "what", "45")):
            text = vllm(100).replace("engine=", 'pod="a",engine=') + vllm(value).replace("engine=", 'pod="b",engine=')
            scrape(source, START + 10 * second, text)
        assert stored(10)["prompt_tokens", ""] == 5

    def test_garbage_in_place_of_a_text_is_a_failure_and_books_nothing(self) -> None:
        source = watched()
        scrape(source, START, vllm(100))
        assert not scrape(source, START + 10, "<html>maintenance</html>")
        source.refresh_from_db()
        assert source.last_error.startswith("This is not a metrics text")
        assert source.last_ok_at == moment(START)


class TestTogether:
    def fleet(self, num_sources: int) -> list[int]:
        past = timezone.now() - timedelta(minutes=5)
        return [watched(f"e{number}", due_at=past).pk for number in range(num_sources)]

    def record(self, ids: list[int], fetch_text: Callable[[Target], str]) -> list[int]:
        return record_many(ids, clock=timezone.now, connection=valkey.client(), fetch_text=fetch_text)

    def test_a_fleet_is_read_side_by_side_and_never_more_at_once_than_is_allowed(self) -> None:
        ids, lock = self.fleet(3 * MAX_FETCHES), threading.Lock()
        at_once, most = 0, 0

        def fetch(target: Target) -> str:
            nonlocal at_once, most
            with lock:
                at_once += 1
                most = max(most, at_once)
            time.sleep(0.02)
            with lock:
                at_once -= 1
            return vllm(1)

        assert sorted(self.record(ids, fetch)) == ids
        assert 1 < most <= MAX_FETCHES

    def test_one_that_fails_costs_no_other_its_reading(self) -> None:
        ids = self.fleet(5)

        def fetch(target: Target) -> str:
            if target.url in ("http://e1/metrics", "http://e3/metrics"):
                raise ScrapeError("it did not answer within 5 s.")
            return vllm(7)

        assert len(self.record(ids, fetch)) == 3
        failed = Source.objects.exclude(last_error="").order_by("name")
        assert [source.name for source in failed] == ["e1", "e3"]
        assert Series.objects.filter(metric="prompt_tokens").count() == 3

    def test_what_nobody_thought_of_costs_no_other_its_reading_and_is_told(self) -> None:
        ids = self.fleet(5)

        def fetch(target: Target) -> str:
            return vllm(7) if target.url != "http://e1/metrics" else None  # type: ignore[return-value]

        assert len(self.record(ids, fetch)) == 4
        (odd,) = Source.objects.exclude(last_error="")
        assert (odd.name, odd.last_error) == ("e1", "It could not be read (TypeError); the worker's log says more.")

    def test_one_that_cannot_be_booked_costs_those_that_come_after_it_nothing(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ids, was_refused = self.fleet(5), threading.Event()
        book = recording._book_together

        def refuse(seen: Sequence[tuple[Source, recording.Look]]) -> list[int]:
            if any(source.name == "e1" for source, _ in seen):
                was_refused.set()
                raise DataError("bigint out of range")
            return book(seen)

        def fetch(target: Target) -> str:
            assert target.url == "http://e1/metrics" or was_refused.wait(10)
            return vllm(7)

        monkeypatch.setattr(recording, "_book_together", refuse)
        with pytest.raises(DataError):
            self.record(ids, fetch)
        assert Source.objects.exclude(last_ok_at=None).count() == 4

    def test_what_was_read_before_is_not_read_again(self) -> None:
        ids = self.fleet(3)
        assert len(self.record(ids, lambda target: vllm(1))) == 3
        assert self.record(ids, lambda target: vllm(2)) == []

    def test_every_engine_of_a_fleet_is_counted_to_the_token(self) -> None:
        ids = self.fleet(8)
        engines = {f"http://e{number}/metrics": Engine("0") for number in range(8)}
        for turn in range(3):
            Source.objects.update(due_at=timezone.now() - timedelta(seconds=1))
            self.record(ids, lambda target: engines[target.url].text())
            for number, engine in enumerate(engines.values()):
                engine.serve({"gpu": 16 * number, "disk": turn}, computed=5)
        expected = sum((engine.truth for engine in engines.values()), start=Engine().truth)
        last = {("prompt_tokens", ""): sum(16 * n + 2 + 5 for n in range(8)), ("computed_tokens", ""): 40}
        last |= {("hit_tokens", "gpu"): sum(16 * n for n in range(8)), ("hit_tokens", "disk"): 16}
        expected.subtract(last)  # what was served after the last look
        assert stored(86400) == +expected
