"""Replays into the series: to the token what was counted, the same however often they are interrupted, once."""

import random
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import DataError

from dashboard import replay_run, tasks
from dashboard.models import Replay, Resolution, Series, Source, TierSetting
from dashboard.services import chunks, replaying
from dashboard.services.chunks import add
from dashboard.services.integrity import check
from dashboard.services.replays import cancel, remove, remove_leftovers, resume
from dashboard.tasks import replay_due
from dashboard.trace_folder import folder
from tests.dashboard.replaying import (
    BLOCK_TOKENS,
    NOW,
    Ticking,
    buckets,
    forget,
    make,
    requests,
    run,
    sums,
    wishes,
    write_trace,
)
from tests.stored import rows
from tiers.traces import KINDS, open_trace

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("home", "valkey")]


@pytest.fixture
def home(tmp_path: Path, settings: Any) -> Path:
    settings.TIERSCOPE_HOME = tmp_path
    forget()
    return tmp_path


def test_the_series_hold_exactly_what_was_replayed_at_every_resolution() -> None:
    write_trace()
    replay = run(make())
    told, counts = requests(), replay.counts
    assert (replay.state, replay.num_done, replay.share) == ("done", len(told), 1.0)
    assert counts["prompt_tokens"] == sum(each["prompt_tokens"] for each in told)
    assert counts["prompt_tokens"] == sum(counts["hit_tokens"].values()) + counts["computed_tokens"]
    for resolution in Resolution.values:
        found = sums(replay, resolution)
        assert found["prompt_tokens", ""] == found["reuse_tokens", ""] == counts["prompt_tokens"]
        assert found["tenant_prompt_tokens", ""] == found["tenant_reuse_tokens", ""] == counts["prompt_tokens"]
        assert found["computed_tokens", ""] == counts["computed_tokens"]
        assert found["generated_tokens", ""] == 9 * len(told)
        assert found["requests", ""] == len(told)
        for tier in ("gpu", "cpu", "disk"):
            assert found["hit_tokens", tier] == counts["hit_tokens"][tier] > 0
            assert found["tenant_hit_tokens", tier] == counts["hit_tokens"][tier]
            assert found["evicted_blocks", tier] == counts["evicted_blocks"][tier] > 0
            assert found["loaded_bytes", tier] == 46_080 * BLOCK_TOKENS * found["loaded_blocks", tier]
    check(now=NOW)


def test_what_came_into_a_tier_and_stayed_is_what_lies_there_at_the_end() -> None:
    write_trace()
    replay = run(make())
    found = sums(replay)
    for tier in ("gpu", "cpu", "disk"):
        last = rows(metric="resident_tokens", cache_tier=tier, resolution=10)[-1]
        assert last.value / last.num_samples == found["entered_tokens", tier] - found["left_tokens", tier] > 0


def test_every_bucket_has_the_requests_of_its_own_seconds() -> None:
    write_trace()
    replay = run(make(starts_at=1_700_000_003))
    wanted: dict[int, int] = {}
    first = requests()[0]["time"]
    for each in requests():
        at = 1_700_000_003 + int(each["time"] - first)
        wanted[at // 86_400 * 86_400] = wanted.get(at // 86_400 * 86_400, 0) + each["prompt_tokens"]
    told = rows(source_id=replay.source_id, metric="prompt_tokens", resolution=86_400)
    assert {row.start_at: row.value for row in told} == wanted


def test_by_default_a_trace_ends_now_and_is_looked_at_every_ten_seconds() -> None:
    write_trace()
    replay = run(make())
    assert replay.starts_at is not None
    assert replay.ends_at is not None
    assert 0 <= NOW.timestamp() - replay.ends_at < 120
    starts = [row.start_at for row in rows(source_id=replay.source_id, metric="scrapes", resolution=10)]
    assert starts == list(range(replay.starts_at // 10 * 10, replay.ends_at, 10))


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


def test_lines_that_cannot_be_read_are_counted_and_told_not_guessed() -> None:
    path = write_trace()
    path.write_text(path.read_text() + '{"time": 2000, "block_ids": 7}\nnonsense\n')
    replay = run(make())
    assert (replay.state, replay.num_done, replay.num_problems) == ("done", len(requests()), 2)
    assert "line 301" in replay.problems[0]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "no requests"),
        ("nonsense\n", "expected"),
        ('{"time": 1, "block_ids": 7}\n', "no requests that can be read"),
    ],
)
def test_a_file_that_is_no_trace_fails_in_a_sentence_and_books_nothing(text: str, sentence: str) -> None:
    write_trace().write_text(text)
    replay = run(make())
    assert replay.state == "failed"
    assert sentence in replay.error
    assert not buckets(replay)


def test_a_file_that_has_changed_is_another_trace() -> None:
    write_trace()
    replay = make()
    write_trace(told=requests(seed=9))
    assert "has changed" in run(replay).error


def test_what_an_engine_records_may_grow_while_it_is_replayed() -> None:
    """Its files are read as far as they were; it is another trace once the oldest of them is gone."""
    recorded = folder() / "recorded-local"
    recorded.mkdir()
    write_trace("recorded-local/0001.jsonl", requests(50))
    replay = make(file_name="recorded-local", tiers=wishes({"gpu": "20"}))
    replaying.take_turn(replay.pk, clock=Ticking(step=1), seconds=3)
    later = [{**each, "time": each["time"] + 10_000} for each in requests(20)]
    write_trace("recorded-local/0002.jsonl", later)
    assert (run(replay).state, replay.num_done) == ("done", 50)
    (recorded / "0001.jsonl").rename(recorded / "0003.jsonl")
    other = make("other", file_name="recorded-local")
    (recorded / "0002.jsonl").unlink()
    assert "has changed" in run(other).error


def test_a_trace_without_times_lies_one_request_a_second() -> None:
    write_trace(told=[{name: value for name, value in each.items() if name != "time"} for each in requests(50)])
    replay = run(make())
    assert replay.extent["seconds"] == 49
    assert not replay.extent["has_times"]


def test_a_trace_lies_where_its_own_times_say_if_that_is_wished_and_they_are_dates() -> None:
    write_trace()
    assert "tells no dates" in run(make("relative", keeps_times=True)).error
    at = 1_700_000_000
    write_trace("dated.jsonl", [{**each, "time": at + each["time"]} for each in requests()])
    replay = run(make("dated", file_name="dated.jsonl", keeps_times=True))
    assert replay.starts_at == at + int(requests()[0]["time"])


def test_sizes_in_bytes_and_tokens_are_blocks_of_the_trace() -> None:
    write_trace()
    replay = run(make(tiers=wishes({"gpu": "1 MiB", "cpu": "2k tokens"}), bytes_a_token=1024))
    assert replay.blocks == {"gpu": 64, "cpu": 125}
    assert "no block" in run(make("tiny", tiers=wishes({"gpu": "1 KiB"}))).error


def test_a_trace_that_would_end_in_the_future_is_refused() -> None:
    write_trace()
    assert "would end in the future" in run(make(starts_at=int(NOW.timestamp()) - 60)).error


def test_times_of_the_trace_that_lie_in_the_future_are_refused() -> None:
    at = int(NOW.timestamp()) + 400 * 86_400
    write_trace(told=[{**each, "time": at + each["time"]} for each in requests()])
    replay = run(make(keeps_times=True))
    assert "lie in the future" in replay.error
    assert not buckets(replay)


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


@pytest.mark.parametrize("size", ["30,000,000 blocks", "500M tokens", "50 TiB"])
def test_tiers_with_too_many_blocks_are_refused_before_the_trace_is_read_to_its_end(
    size: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay_run, "PORTION", 20)
    write_trace()
    replay = make(tiers=wishes({"gpu": size}))
    with pytest.raises(ValueError, match="blocks together; expected at most 20,000,000"):
        replay_run.Scan(replay).step()
    assert "expected at most 20,000,000" in run(replay).error


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


def test_tenants_that_cannot_be_written_are_made_readable() -> None:
    write_trace(told=[{**each, "tenant": "a\0b\n"} for each in requests(20)])
    replay = run(make())
    assert replay.state == "done"
    told = Series.objects.filter(source=replay.source_id, metric="tenant_prompt_tokens")
    assert list(told.values_list("detail", flat=True)) == ["a?b?"]


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


@pytest.mark.parametrize("mode", TierSetting.WriteMode.values)
@pytest.mark.parametrize("policy", TierSetting.Policy.values)
def test_every_policy_and_mode_can_be_replayed(policy: str, mode: str) -> None:
    write_trace()
    replay = run(make(tiers=wishes(policy=policy, write_mode=mode)))
    assert replay.state == "done"
    assert sums(replay)["prompt_tokens", ""] == replay.counts["prompt_tokens"]


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        ({"name": "local"}, "embedded engine"),
        ({"name": "with space"}, "valid value"),
        ({"file_name": "../secret-key"}, "no trace"),
        ({"file_name": "absent"}, "no trace"),
        ({"tiers": wishes({"cpu": "1"})}, "fastest first"),
        ({"tiers": wishes({"gpu": "0"})}, "at least one block"),
        ({"tiers": wishes(policy="mru")}, "no policy"),
        ({"bytes_a_token": 0}, "Bytes a token"),
        ({"starts_at": 5_000_000_000}, "between 1970 and now"),
    ],
)
def test_what_cannot_be_replayed_is_refused_before_anything_is_stored(told: dict[str, Any], sentence: str) -> None:
    write_trace()
    with pytest.raises(ValidationError) as refused:
        make(told.pop("name", "week"), **told)
    assert sentence in " ".join(refused.value.messages)
    assert not Source.objects.exists()


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


def test_the_forms_that_a_person_chooses_are_those_that_have_requests() -> None:
    assert {*Replay.Form.values} - {"auto"} == {*KINDS} - {"vllm-kv-events"}
