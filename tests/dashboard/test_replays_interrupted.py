"""Replays that are killed, cancelled, slow or met by several workers: booked once, as one that nobody disturbs."""

import random
from datetime import timedelta
from typing import Any

import pytest
from django.db import DataError

from dashboard import replay_run, tasks
from dashboard.models import Replay, Series, Source
from dashboard.services import chunks, replaying
from dashboard.services.chunks import add
from dashboard.services.replays import cancel, remove, remove_leftovers, resume
from dashboard.tasks import replay_due
from tests.dashboard.replaying import (
    NOW,
    Ticking,
    buckets,
    forget,
    make,
    requests,
    run,
    write_trace,
)
from tiers.traces import open_trace

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("replay_home", "valkey")]


@pytest.mark.parametrize("seed", range(1, 5))
def test_one_that_is_killed_cancelled_and_resumed_ends_with_the_buckets_of_an_undisturbed_one(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay_run, "PORTION", 60)
    write_trace()
    undisturbed = run(make("undisturbed"))
    disturbed = make("disturbed")
    rng, clock, num_turns = random.Random(seed), Ticking(), 0
    while disturbed.state not in ("done", "failed"):
        replaying.take_turn(disturbed.pk, clock=clock, seconds=3 * rng.random(), worker=f"worker-{num_turns // 3}")
        disturbed.refresh_from_db()
        if rng.random() < 0.2:
            forget()  # killed
        if rng.random() < 0.3 and cancel(disturbed, now=clock()):
            assert resume(disturbed)
        clock.now += timedelta(seconds=rng.choice((1, replaying.KEPT_SECONDS)))
        num_turns += 1
        assert num_turns < 200, "it does not come to an end"
    assert num_turns > 2
    assert disturbed.counts == undisturbed.counts
    assert buckets(disturbed) == buckets(undisturbed)


def test_a_crash_while_it_is_booked_neither_loses_nor_doubles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay_run, "PORTION", 20)
    write_trace()
    undisturbed, other = run(make("undisturbed")), make("other")
    calls = 0

    def crashes_at_the_third(sums: Any) -> None:
        nonlocal calls
        calls += 1
        add(sums)
        if calls == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(chunks, "add", crashes_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        run(other)
    assert run(other).state == "done"
    assert buckets(other) == buckets(undisturbed)


def test_two_workers_do_not_book_the_same_and_one_that_has_it_in_memory_is_waited_for() -> None:
    write_trace()
    replay = make()
    assert replaying.take_turn(replay.pk, clock=Ticking(), seconds=0.1, worker="first")
    assert not replaying.take_turn(replay.pk, clock=Ticking(), worker="second")
    assert replaying.unfinished_ids(NOW + timedelta(seconds=10), "second") == []
    later = NOW + timedelta(seconds=replaying.KEPT_SECONDS + 10)
    assert replaying.unfinished_ids(later, "second") == [replay.pk]


def test_a_cancelled_one_stops_at_once_keeps_what_it_has_and_goes_on_when_it_is_resumed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(replay_run, "PORTION", 20)
    write_trace()
    replay = make()
    while not replay.num_done:
        replaying.take_turn(replay.pk, clock=Ticking(), seconds=1)
        replay.refresh_from_db()
    assert cancel(replay, now=NOW)
    assert not cancel(replay, now=NOW)
    assert not replaying.take_turn(replay.pk, clock=Ticking())
    replaying.let_go_of_ended()
    assert not replaying._held
    num_done, there = replay.num_done, buckets(replay)
    replay.refresh_from_db()
    assert (replay.state, replay.num_done, buckets(replay)) == ("cancelled", num_done, there)
    assert resume(replay)
    assert run(replay).state == "done"


def test_one_that_is_removed_takes_its_series_along_and_whoever_is_on_it_stops() -> None:
    write_trace()
    kept, removed = run(make("kept")), make("removed")
    replaying.take_turn(removed.pk, clock=Ticking(), seconds=1)
    there = buckets(kept)
    remove(removed)
    assert not replaying.take_turn(removed.pk, clock=Ticking())
    assert not Source.objects.filter(name="removed").exists()
    assert not Series.objects.filter(engine="removed").exists()
    assert buckets(kept) == there


def test_long_requests_come_in_small_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a claim outlasts each, and nobody else begins the same anew."""
    write_trace()
    undisturbed = run(make("undisturbed"))
    monkeypatch.setattr(replay_run, "PORTION_COST", 20)
    scan = replay_run.Scan(make("scanned"))
    scan.step()
    assert 0 < scan._num_requests < 30
    scan.close()
    replay = run(make("in-portions"))
    assert (replay.state, replay.counts) == ("done", undisturbed.counts)


def test_a_long_pause_is_booked_in_small_transactions_and_killed_in_it_goes_on_from_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of two hours, 720 readings of three tiers."""
    told = requests(20)
    write_trace(
        told=[{**each, "time": each["time"] + (7_200 if number > 9 else 0)} for number, each in enumerate(told)]
    )
    undisturbed, disturbed = run(make("undisturbed")), make("disturbed")
    sizes: list[int] = []

    def counted(sums: Any) -> None:
        sizes.append(len(sums.buckets))
        add(sums)

    monkeypatch.setattr(chunks, "add", counted)
    monkeypatch.setattr(replaying, "_COMMIT_AMOUNTS", 500)
    monkeypatch.setattr(replay_run, "PORTION_READINGS", 30)
    clock = Ticking(step=0.001)
    reached: list[tuple[int, int]] = []
    while disturbed.state != "done":
        replaying.take_turn(disturbed.pk, clock=clock, seconds=0.06, worker=f"worker-{len(reached)}")
        forget()  # killed
        disturbed.refresh_from_db()
        reached.append((disturbed.num_done, disturbed.read_until))
        clock.now += timedelta(seconds=replaying.KEPT_SECONDS)
        assert len(reached) < 100, "it does not come to an end"
    assert max(sizes) < 3_000
    assert len({until for num_done, until in reached if num_done == 10}) > 1
    assert buckets(disturbed) == buckets(undisturbed)
    assert disturbed.counts == undisturbed.counts


@pytest.mark.parametrize("step", ["_scan", "_run"])
def test_one_that_takes_long_to_open_stays_claimed_and_ends_when_it_is_cancelled(
    step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_trace()
    replay, clock = make(), Ticking()
    while step == "_run" and not replay.extent:
        replaying.take_turn(replay.pk, clock=clock, seconds=0.5)
        replay.refresh_from_db()
    forget()
    seen: list[list[int]] = []

    def slowly(*args: Any, while_opening: Any, **told: Any) -> Any:
        for _ in range(20):
            clock.now += timedelta(seconds=replaying.CLAIM_SECONDS / 4)
            while_opening()
            seen.append(replaying.unfinished_ids(clock.now, replaying.WORKER))
        cancel(replay, now=clock.now)
        clock.now += timedelta(seconds=replaying.CLAIM_SECONDS / 4)
        while_opening()
        return open_trace(*args, **told)

    monkeypatch.setattr(replay_run, "open_trace", slowly)
    assert replaying.take_turn(replay.pk, clock=clock)
    assert seen == [[]] * 20
    replay.refresh_from_db()
    assert replay.state == "cancelled"
    assert not replaying._held


def test_numbers_that_no_column_holds_end_it_and_keep_no_other_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    write_trace()
    first, second = make("first"), make("second")

    def too_large(sums: Any) -> None:
        raise DataError("integer out of range")

    with monkeypatch.context() as patched:
        patched.setattr(chunks, "add", too_large)
        with pytest.raises(DataError):
            run(first)
    first.refresh_from_db()
    assert (first.state, buckets(first)) == ("failed", set())
    assert replaying.unfinished_ids(NOW + timedelta(minutes=10)) == [second.pk]


def test_a_removal_that_was_broken_off_is_ended_later() -> None:
    write_trace()
    kept, removed = run(make("kept")), run(make("removed"))
    Replay.objects.filter(pk=removed.pk).delete()
    remove_leftovers()
    assert list(Source.objects.values_list("name", flat=True)) == ["kept"]
    assert not Series.objects.filter(engine="removed").exists()
    assert buckets(kept)


def test_one_thread_of_a_worker_replays_at_a_time() -> None:
    write_trace()
    replay = make()
    with tasks._replaying:
        assert not replay_due()
    assert replay_due()
    replay.refresh_from_db()
    assert replay.state == "done"


def test_the_worker_goes_on_with_the_oldest_by_itself() -> None:
    write_trace()
    first, second = make("first", now=NOW), make("second", now=NOW)
    assert replay_due()
    first.refresh_from_db()
    assert first.state == "done"
    assert replay_due()
    second.refresh_from_db()
    assert second.state == "done"
    assert not replay_due()
