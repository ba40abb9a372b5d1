"""What cannot be replayed, or not whole: told in a sentence, and nothing is booked that was not read."""

from typing import Any

import pytest
from django.core.exceptions import ValidationError

from dashboard import replay_run
from dashboard.models import Source
from tests.dashboard.replaying import (
    NOW,
    buckets,
    make,
    requests,
    run,
    wishes,
    write_trace,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("replay_home", "valkey")]


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


def test_a_trace_that_would_end_in_the_future_is_refused() -> None:
    write_trace()
    assert "would end in the future" in run(make(starts_at=int(NOW.timestamp()) - 60)).error


def test_times_of_the_trace_that_lie_in_the_future_are_refused() -> None:
    at = int(NOW.timestamp()) + 400 * 86_400
    write_trace(told=[{**each, "time": at + each["time"]} for each in requests()])
    replay = run(make(keeps_times=True))
    assert "lie in the future" in replay.error
    assert not buckets(replay)


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
