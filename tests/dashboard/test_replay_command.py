"""`manage.py replay`: the trace through the real tiers from the command line, with the same answer as the series."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from dashboard.models import Replay
from dashboard.replay_words import tiers_in_words
from dashboard.services import replaying
from dashboard.services.replays import cancel
from dashboard.tasks import replay_due
from tests.dashboard.replaying import NOW, Ticking, forget, make, requests, sums, write_trace

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("valkey")]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, settings: Any) -> Path:
    settings.TIERSCOPE_HOME = tmp_path / "home"
    forget()
    return tmp_path


@pytest.fixture
def trace(home: Path) -> Path:
    path = home / "week.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in requests()))
    return path


def told(*arguments: str) -> str:
    out = StringIO()
    call_command("replay", *arguments, stdout=out)
    return out.getvalue()


def test_it_runs_here_and_says_what_whatif_says(trace: Path) -> None:
    found = json.loads(told(str(trace), "--tiers", "gpu=20,cpu=30", "--json"))
    out = StringIO()
    call_command("whatif", str(trace), "--tiers", "gpu=20,cpu=30", "--json", stdout=out)
    predicted = json.loads(out.getvalue())["tiers"]
    assert found["state"] == "done"
    assert found["hit_tokens"] == {tier: each["hit_tokens"] for tier, each in predicted.items()}
    assert sums(Replay.objects.get())["hit_tokens", "cpu"] == found["hit_tokens"]["cpu"]


def test_it_tells_a_person_each_tier_s_share(trace: Path) -> None:
    text = told(str(trace), "--tiers", "gpu=20,disk=2k tokens", "--mode", "write_through", "--name", "tuesday")
    assert "300 of 300 requests" in text
    assert "disk" in text
    replay = Replay.objects.get()
    assert (replay.name, replay.tiers[1]["write_mode"]) == ("tuesday", "write_through")


def test_each_tier_may_have_its_own_mode_and_policy(trace: Path) -> None:
    modes = ("--mode", "disk=write_selective", "--policy", "gpu=arc", "--store-after-hits", "3")
    told(str(trace), "--tiers", "gpu=20,cpu=20,disk=20", *modes)
    tiers = Replay.objects.get().tiers
    assert [tier["write_mode"] for tier in tiers] == ["write_back", "write_back", "write_selective"]
    assert [tier["policy"] for tier in tiers] == ["arc", "lru", "lru"]


def test_tenants_may_have_a_share_only(trace: Path) -> None:
    told(str(trace), "--tiers", "gpu=20,cpu=20", "--tenant-quota", "0.5")
    assert tiers_in_words(Replay.objects.get()) == [
        "gpu 20 blocks, LRU, a tenant at most 50 %",
        "cpu 20 blocks, LRU, write back, a tenant at most 50 %",
    ]
    with pytest.raises(CommandError, match="A tenant's largest share"):
        told(str(trace), "--tiers", "gpu=20", "--tenant-quota", "0")


def test_it_can_be_left_to_the_worker_which_finds_the_trace_in_its_folder(trace: Path) -> None:
    assert "waits for the worker" in told(str(trace), "--tiers", "gpu=20", "--background")
    trace.unlink()
    replay_due()
    assert Replay.objects.get().state == "done"


def test_a_second_run_of_the_same_trace_has_another_name(trace: Path) -> None:
    told(str(trace), "--tiers", "gpu=20")
    told(str(trace), "--tiers", "gpu=30")
    assert sorted(replay.name for replay in Replay.objects.all()) == ["week", "week-2"]


def test_a_cancelled_one_is_resumed_by_its_name() -> None:
    write_trace()
    replay = make()
    replaying.take_turn(replay.pk, clock=Ticking(), seconds=0.5)
    cancel(replay, now=NOW)
    assert json.loads(told("--resume", "week", "--json"))["state"] == "done"
    with pytest.raises(CommandError, match="is done"):
        told("--resume", "week")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "Name a trace"),
        (("absent.jsonl", "--tiers", "gpu=1"), "is no file and no folder"),
        (("TRACE", "--tiers", "gpu=lots"), "is no size"),
        (("TRACE", "--tiers", "gpu"), "is no tier with a size"),
        (("TRACE", "--tiers", "cpu=1"), "fastest first"),
        (("TRACE", "--tiers", "gpu=1", "--mode", "sideways"), "is no mode"),
        (("TRACE", "--tiers", "gpu=1", "--policy", "gpu=mru"), "is no policy"),
        (("TRACE", "--tiers", "gpu=1", "--name", "local"), "embedded engine"),
        (("TRACE", "--tiers", "gpu=1", "--starts-at", "soon"), "is no time"),
        (("TRACE", "--tiers", "gpu=1", "--starts-at", "trace"), "tells no dates"),
        (("--resume", "nobody"), "There is no replay"),
    ],
)
def test_what_is_wrong_is_one_sentence(trace: Path, arguments: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(CommandError, match=sentence):
        told(*(str(trace) if each == "TRACE" else each for each in arguments))
