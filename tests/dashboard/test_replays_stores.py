"""Replays on a SQLite file and on a PostgreSQL, with real commits."""

from datetime import timedelta

import pytest

from dashboard.models import Replay, Source
from dashboard.services import replaying
from dashboard.services.integrity import check
from dashboard.services.replays import cancel, remove, resume
from tests.dashboard.replaying import NOW, Ticking, buckets, forget, make, run, sums, write_trace


@pytest.mark.usefixtures("store", "valkey", "replay_home")
def test_a_replay_that_is_cancelled_killed_and_resumed_is_booked_once() -> None:
    write_trace()
    undisturbed, replay = run(make("undisturbed")), make()
    clock = Ticking()
    replaying.take_turn(replay.pk, clock=clock, seconds=1, worker="first")
    assert cancel(replay, now=NOW)
    assert resume(replay)
    replaying.take_turn(replay.pk, clock=clock, seconds=1.5, worker="second")
    forget()
    clock.now += timedelta(seconds=replaying.KEPT_SECONDS)
    run(replay, clock)
    assert replay.state == Replay.State.DONE
    assert buckets(replay) == buckets(undisturbed)
    assert sums(replay)["prompt_tokens", ""] == replay.counts["prompt_tokens"]
    check(now=NOW)
    remove(replay)
    assert [source.name for source in Source.objects.filter(kind="replay")] == ["undisturbed"]
