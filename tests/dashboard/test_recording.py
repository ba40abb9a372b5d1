"""Recording, end to end with a real Valkey: what engines counted is what the buckets hold, on both databases."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection, connections

from dashboard import valkey
from dashboard.models import EngineRun, Resolution, Series, Source
from dashboard.services.integrity import check
from dashboard.services.recording import claim, due_source_ids, next_due, publish_tick, record
from dashboard.services.sources import ensure_embedded, start_over
from dashboard.sources.http import ScrapeError
from tests.dashboard.told import Engine, moment, stored, telling
from tests.stored import rows

pytestmark = pytest.mark.usefixtures("valkey", "store")

START = 1_800_000_000  # a multiple of a day would hide misaligned buckets: this is 08:00 UTC


def record_at(source: Source, seconds: float) -> bool:
    Source.objects.filter(pk=source.pk).update(due_at=moment(seconds))
    return record(source.pk, now=moment(seconds), connection=valkey.client())


def watched(**told: object) -> Source:
    return Source.objects.create(
        **{"name": "prod", "kind": "auto", "url": "http://prod/metrics", "due_at": moment(START), **told}
    )


def scrape(source: Source, engine: Engine, seconds: float) -> bool:
    Source.objects.filter(pk=source.pk).update(due_at=moment(seconds))
    return record(source.pk, now=moment(seconds), connection=valkey.client(), fetch_text=lambda url: engine.text())


def test_every_resolution_holds_what_an_embedded_engine_counted_since_its_start() -> None:
    source, engine = ensure_embedded(), Engine()
    engine.serve({"gpu": 64, "disk": 16}, computed=20)
    engine.publish(START)
    assert record_at(source, START + 1)
    engine.serve({"cpu": 32}, computed=7)
    engine.publish(START + 10)
    assert record_at(source, START + 10)
    assert all(stored(resolution) == +engine.truth for resolution in Resolution.values)
    check(now=moment(START + 3600))


def test_a_reading_that_did_not_change_adds_nothing_but_the_observation() -> None:
    source, engine = ensure_embedded(), Engine()
    engine.serve({"gpu": 16}, computed=4)
    for second in (0, 5, 10):
        engine.publish(START + second)
        record_at(source, START + second)
    assert stored(10) == +engine.truth
    assert sum(row.value for row in rows(metric="scrapes", resolution=86400)) == 3


def test_the_same_snapshot_read_twice_counts_once() -> None:
    source, engine = ensure_embedded(), Engine()
    engine.serve({"gpu": 16}, computed=4)
    engine.publish(START)
    record_at(source, START + 1)
    record_at(source, START + 6)
    assert stored(10) == +engine.truth


def test_an_older_snapshot_of_the_same_run_is_not_taken_for_a_restart() -> None:
    source, engine = ensure_embedded(), Engine()
    engine.serve({"gpu": 16}, computed=4)
    engine.publish(START + 9)
    record_at(source, START + 10)
    engine.counts.clear()
    engine.publish(START + 5)
    record_at(source, START + 15)
    assert stored(10) == +engine.truth


def test_an_engine_that_dies_between_two_scrapes_loses_nothing() -> None:
    source, engine = ensure_embedded(), Engine()
    engine.serve({"gpu": 16}, computed=4)
    engine.publish(START + 1, is_alive=False)
    engine.restart()
    engine.serve({"cpu": 48}, computed=1)
    engine.publish(START + 3)
    record_at(source, START + 5)
    assert stored(10) == +engine.truth
    assert EngineRun.objects.count() == 2


def test_a_watched_engines_first_reading_is_a_baseline_and_not_an_increase() -> None:
    source, engine = watched(), Engine("0")
    engine.serve({"gpu": 1000}, computed=10)
    scrape(source, engine, START)
    assert stored(10) == Counter()
    engine.serve({"gpu": 64}, computed=2)
    scrape(source, engine, START + 10)
    assert stored(86400) == {("prompt_tokens", ""): 66, ("computed_tokens", ""): 2, ("hit_tokens", "gpu"): 64}


def test_a_watched_engine_that_restarted_counts_its_whole_new_value() -> None:
    source, engine = watched(), Engine("0")
    engine.serve({"gpu": 1000}, computed=10)
    scrape(source, engine, START)
    engine.restart()
    engine.serve({"gpu": 64}, computed=2)
    scrape(source, engine, START + 10)
    assert stored(10)["prompt_tokens", ""] == 66


def test_a_child_that_appears_later_started_from_zero() -> None:
    source, engine = watched(kind="sglang"), Engine("0")
    texts = iter(
        [
            'sglang:prompt_tokens_total{model_name="m"} 100\n',
            'sglang:prompt_tokens_total{model_name="m"} 180\n'
            'sglang:cached_tokens_total{model_name="m",cache_source="host"} 64\n',
        ]
    )
    for second in (0, 10):
        Source.objects.filter(pk=source.pk).update(due_at=moment(START + second))
        record(source.pk, now=moment(START + second), connection=valkey.client(), fetch_text=lambda url: next(texts))
    assert stored(10) == {("prompt_tokens", ""): 80, ("hit_tokens", "cpu"): 64, ("computed_tokens", ""): 16}
    assert engine.truth == Counter()


def test_a_source_whose_address_changed_starts_over_with_a_baseline() -> None:
    source, engine = watched(), Engine("0")
    scrape(source, engine, START)
    engine.serve({"gpu": 64}, computed=2)
    start_over(source)
    scrape(source, engine, START + 10)
    assert stored(10) == Counter()


def test_watched_engines_are_named_after_their_source() -> None:
    source, engine = watched(), Engine("0")
    scrape(source, engine, START)
    assert set(Series.objects.values_list("engine", flat=True)) == {"prod/0"}


def test_two_workers_that_see_the_same_due_source_record_it_once() -> None:
    source, engine = ensure_embedded(), Engine()
    engine.serve({"gpu": 16}, computed=4)
    engine.publish(START)
    Source.objects.filter(pk=source.pk).update(due_at=moment(START))

    def work(_: int) -> bool:
        try:
            return record(source.pk, now=moment(START + 1), connection=valkey.client())
        finally:
            connections["default"].close()

    with ThreadPoolExecutor(6) as pool:
        recorded = list(pool.map(work, range(12)))
    assert recorded.count(True) == 1
    assert stored(10) == +engine.truth


def test_a_claimed_source_is_not_due_until_its_claim_ends() -> None:
    source = ensure_embedded()
    Source.objects.filter(pk=source.pk).update(due_at=moment(START))
    assert claim(source.pk, moment(START)) is not None
    assert due_source_ids(moment(START + 1)) == []
    assert claim(source.pk, moment(START + 1)) is None
    assert due_source_ids(moment(START + 61)) == [source.pk]


def test_a_scrape_that_outlived_its_claim_is_thrown_away() -> None:
    source, engine = watched(), Engine("0")
    scrape(source, engine, START)
    engine.serve({"gpu": 64}, computed=2)
    old_text = engine.text()
    engine.serve({"gpu": 16}, computed=1)

    def slow_fetch(target: object) -> str:
        assert scrape(source, engine, START + 80)  # another worker, after this one's claim ran out
        return old_text

    Source.objects.filter(pk=source.pk).update(due_at=moment(START + 10))
    assert not record(source.pk, now=moment(START + 10), connection=valkey.client(), fetch_text=slow_fetch)
    assert stored(10)["prompt_tokens", ""] == 83


def test_a_crash_at_any_statement_neither_loses_nor_doubles() -> None:
    source, engine = ensure_embedded(), Engine()
    second, crashes = START, 0
    for statement in range(40):
        engine.serve({"gpu": 16, "cpu": 3}, computed=4)
        second += 10
        engine.publish(second)
        try:
            with connection.execute_wrapper(_Crash(after=statement)):
                record_at(source, second)
        except _Crashed:
            crashes += 1
    engine.publish(second + 5)
    record_at(source, second + 5)
    assert crashes > 10
    assert all(stored(resolution) == +engine.truth for resolution in Resolution.values)
    check(now=moment(START + 3600))


class _Crashed(BaseException):
    """No handler in the product may swallow it, as none could swallow a SIGKILL."""


class _Crash:
    def __init__(self, after: int) -> None:
        self.num_left = after

    def __call__(self, execute, sql, params, many, context):  # type: ignore[no-untyped-def]
        self.num_left -= 1
        if self.num_left < 0:
            raise _Crashed
        return execute(sql, params, many, context)


def test_a_source_that_cannot_be_read_keeps_the_sentence_and_is_tried_again_at_its_next_time() -> None:
    source = watched()

    def broken(target: object) -> str:
        raise ScrapeError("prod could not be read: connection refused.")

    assert not record(source.pk, now=moment(START + 3), connection=valkey.client(), fetch_text=broken)
    source.refresh_from_db()
    assert source.last_error == "prod could not be read: connection refused."
    assert source.last_ok_at is None
    assert source.due_at == moment(START + 10)


def test_nonsense_of_one_engine_does_not_cost_another_its_readings() -> None:
    source, engine = ensure_embedded(), Engine()
    valkey.client().set(valkey.engine_key("broken"), f'{{"boot_id": "b", "at": {START}, "exposition": "<html>"}}')
    valkey.client().set(valkey.engine_key("worse"), "not JSON")
    engine.serve({"gpu": 16}, computed=4)
    engine.publish(START)
    assert record_at(source, START)
    source.refresh_from_db()
    assert stored(10) == +engine.truth
    assert "broken: This is not a metrics text" in source.last_error
    assert "ts:engine:worse holds no engine snapshot" in source.last_error


def test_a_snapshot_from_the_future_is_booked_now() -> None:
    source, engine = ensure_embedded(), Engine()
    engine.serve({"gpu": 16}, computed=4)
    engine.publish(START + 100_000)
    record_at(source, START)
    assert not [row for row in rows(resolution=10) if row.start_at > START]


def test_a_negative_or_missing_number_is_no_restart() -> None:
    source = watched(kind="vllm_old")
    texts = iter(["100", "-1", "NaN", "130"])
    for second in (0, 10, 20, 30):
        text = f'vllm:prefix_cache_queries_total{{engine="0",model_name="m"}} {next(texts)}\n'
        Source.objects.filter(pk=source.pk).update(due_at=moment(START + second))
        record(source.pk, now=moment(START + second), connection=valkey.client(), fetch_text=telling(text))
    assert stored(10)["prompt_tokens", ""] == 30


@pytest.mark.parametrize(("seconds", "expected"), [(0, 10), (3.5, 10), (9.9, 10), (10, 20)])
def test_scrapes_fall_on_multiples_of_the_interval(seconds: float, expected: int) -> None:
    assert next_due(moment(START + seconds), 10) == moment(START + expected)


def test_scrapes_that_come_a_little_late_leave_no_bucket_empty() -> None:
    source, engine = ensure_embedded(), Engine()
    for index in range(12):
        at = START + 5 * index + (index * 7 % 20) / 10  # up to 2 s late
        engine.serve({"gpu": 16}, computed=4)
        engine.publish(at)
        record_at(source, at)
    told = rows(metric="scrapes", resolution=10)
    assert {row.value for row in told if START <= row.start_at < START + 50} == {2}


def test_open_pages_are_told_after_a_recording() -> None:
    listener = valkey.client().pubsub(  # type: ignore[no-untyped-call]
        ignore_subscribe_messages=True
    )
    listener.subscribe(valkey.TICK_CHANNEL)
    listener.get_message(timeout=1)
    publish_tick(valkey.client(), 7)
    message = listener.get_message(timeout=2)
    assert message is not None
    assert message["data"] == "7"


def test_a_source_that_is_switched_off_is_left_alone() -> None:
    source = watched(is_enabled=False)
    assert due_source_ids(moment(START) + timedelta(days=1)) == []
    assert claim(source.pk, moment(START + 86400)) is None
