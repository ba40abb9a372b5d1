"""Replays into the series: to the token what was counted, in buckets of their own seconds."""

import pytest

from dashboard.models import Replay, Resolution, Series, TierSetting
from dashboard.services import replaying
from dashboard.services.integrity import check
from dashboard.trace_folder import folder
from tests.dashboard.replaying import (
    BLOCK_TOKENS,
    NOW,
    Ticking,
    make,
    requests,
    run,
    sums,
    wishes,
    write_trace,
)
from tests.stored import rows
from tiers.traces import KINDS

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("replay_home", "valkey")]


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


def test_tenants_that_cannot_be_written_are_made_readable() -> None:
    write_trace(told=[{**each, "tenant": "a\0b\n"} for each in requests(20)])
    replay = run(make())
    assert replay.state == "done"
    told = Series.objects.filter(source=replay.source_id, metric="tenant_prompt_tokens")
    assert list(told.values_list("detail", flat=True)) == ["a?b?"]


@pytest.mark.parametrize("mode", TierSetting.WriteMode.values)
@pytest.mark.parametrize("policy", TierSetting.Policy.values)
def test_every_policy_and_mode_can_be_replayed(policy: str, mode: str) -> None:
    write_trace()
    replay = run(make(tiers=wishes(policy=policy, write_mode=mode)))
    assert replay.state == "done"
    assert sums(replay)["prompt_tokens", ""] == replay.counts["prompt_tokens"]


def test_the_forms_that_a_person_chooses_are_those_that_have_requests() -> None:
    assert {*Replay.Form.values} - {"auto"} == {*KINDS} - {"vllm-kv-events"}
