"""Trying policies and write modes: asked for from the page, gone on with by a worker, then part of the advice."""

import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from dashboard.models import PolicySearch, Prices
from dashboard.policy_words import base_of, in_words, setup_of
from dashboard.services import policy_search
from dashboard.services.policy_search import create, take_turn, unfinished_ids
from dashboard.tasks import policies_due
from tests.dashboard.live_engine import BLOCK_BYTES, publish
from tests.dashboard.replaying import NOW, Ticking, requests, write_trace
from tests.dashboard.seeded import lively
from tests.dashboard.test_views_what_if import SIZES

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("home", "valkey")]

TIERS = [
    {"tier": name, "policy": "lru", "write_mode": "write_back", "store_after_hits": 2, "bytes_a_token": 100.0}
    for name in ("gpu", "cpu")
]
BLOCK = 16 * 100  # bytes
TODAY = {"gpu": 12 * BLOCK, "cpu": 15 * BLOCK}


@pytest.fixture
def home(tmp_path: Path, settings: Any) -> Path:
    settings.TIERSCOPE_HOME = tmp_path
    policy_search._held.clear()
    return tmp_path


def make(**told: Any) -> PolicySearch:
    asked = {"engine": "local", "file_name": "week.jsonl", "form": "auto", "tiers": TIERS, "sizes": [TODAY]}
    return create(**{**asked, "seconds": {}, "author": None, "now": NOW, **told})


def ticking() -> Ticking:
    """So that the trace is read within its time."""
    return Ticking(step=0.001)


def run(search: PolicySearch, seconds: float = 1_000.0) -> PolicySearch:
    clock = ticking()
    while take_turn(search.pk, clock=clock, seconds=seconds):
        pass
    search.refresh_from_db()
    return search


def test_every_choice_of_a_tier_is_tried_and_the_base_and_today_s_setup_first() -> None:
    write_trace()
    search = run(make(sizes=[TODAY, {"gpu": 30 * BLOCK, "cpu": 0}]))
    assert (search.state, search.error) == ("done", "")
    assert search.sample == {"requests": len(requests()), "rate": 1.0, "is_all": True}
    at_today = [each["setup"] for each in search.results if each["sizes"] == 0]
    assert at_today[0] == [["lru", "write_back"], ["lru", "write_back"]]
    assert len(at_today) == 1 + 2 + 8, "two policies more in gpu, eight choices more in cpu"
    assert len(search.results) == len(at_today) + 3, "a tier that is off has no choices"
    assert all(0 < sum(each["hit"]) < 1 for each in search.results)


def test_a_worker_that_dies_loses_nothing_that_was_stored() -> None:
    write_trace()
    whole = run(make()).results
    search, clock, num_turns = make(), ticking(), 0
    while take_turn(search.pk, clock=clock, seconds=0.01):
        policy_search._held.clear()
        num_turns += 1
    search.refresh_from_db()
    assert num_turns > 1
    assert search.state == "done"
    assert search.results == whole


def test_a_faster_worker_reads_as_many_requests_as_the_one_that_began() -> None:
    """Differences between what is served on two samples would be differences between samples."""
    write_trace()
    search = make()
    assert take_turn(search.pk, clock=Ticking(step=3.0), seconds=10.0)
    search.refresh_from_db()
    begun, known = search.sample, search.results
    assert known
    assert 1 < begun["requests"] < len(requests())
    policy_search._held.clear()
    assert run(search).sample == begun
    assert search.results[: len(known)] == known


def test_a_worker_whose_claim_ran_out_writes_nothing_over_that_of_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    write_trace()
    search, others, real = make(), NOW + timedelta(hours=1), policy_search._Turn._sample

    def slow(turn: Any) -> Any:
        sample = real(turn)
        PolicySearch.objects.update(claimed_until=others)
        return sample

    monkeypatch.setattr(policy_search._Turn, "_sample", slow)
    take_turn(search.pk, clock=ticking())
    search.refresh_from_db()
    assert search.claimed_until == others
    assert not search.results


def test_one_at_a_time_is_on_it() -> None:
    search = make()
    PolicySearch.objects.update(claimed_until=NOW + timedelta(seconds=60))
    assert unfinished_ids(NOW) == []
    assert not take_turn(search.pk, clock=Ticking())
    assert unfinished_ids(NOW + timedelta(seconds=61)) == [search.pk]


@pytest.mark.parametrize(
    ("lines", "told"),
    [([], "has no requests"), ([{"time": 0, "block_ids": []}], "has no requests with blocks that can be read")],
)
def test_a_trace_that_says_nothing_fails_in_a_sentence(lines: list[dict[str, Any]], told: str) -> None:
    write_trace(told=lines)
    search = run(make())
    assert (search.state, told in search.error) == ("failed", True), search.error


def test_a_trace_that_is_gone_fails_in_a_sentence() -> None:
    assert "There is no trace “week.jsonl”" in run(make()).error


def test_a_new_search_takes_the_place_of_one_that_goes_on() -> None:
    first = make()
    second = make()
    assert list(PolicySearch.objects.values_list("pk", flat=True)) == [second.pk]
    assert not take_turn(first.pk, clock=Ticking())


def test_setups_are_told_by_what_is_other_than_today() -> None:
    today = setup_of([TIERS[0], {**TIERS[1], "write_mode": "write_selective"}])
    assert base_of(TIERS) == (("lru", "write_back"),) * 2
    assert in_words(["gpu", "cpu"], today, today) == ""
    told = in_words(["gpu", "cpu"], (("arc", "write_back"), ("s3fifo", "write_through")), today)
    assert told == "gpu ARC, cpu S3-FIFO and write through"


# -- the page ----------------------------------------------------------------------------------------------------------
@pytest.fixture
def browser(client: Client) -> Client:
    lively(time.time(), seconds=900).store(time.time())
    told: dict[str, Any] = {tier: {"capacity_bytes": blocks * BLOCK_BYTES} for tier, blocks in SIZES.items()}
    publish(**told)
    Prices.objects.create(pk=1, gpu_gib_month=500_000, cpu_gib_month=100_000, disk_gib_month=10_000, gpu_hour=2)
    client.force_login(User.objects.create_user("ada", is_staff=True))
    return client


def advice(browser: Client) -> Any:
    response = browser.get("/api/advice.json?range=1h")
    assert response.status_code == 200, response.content
    return response.json()


def test_without_a_trace_the_page_says_what_to_switch_on(browser: Client) -> None:
    told = advice(browser)["policies"]
    assert "Replay a trace of its requests" in told["text"]
    assert not told["can_start"]
    assert browser.post("/api/policies/?range=1h").status_code == 400


def test_what_was_found_is_part_of_the_advice(browser: Client) -> None:
    from dashboard.trace_folder import folder

    write_trace()
    (folder() / "recorded-local").mkdir()
    (folder() / "week.jsonl").rename(folder() / "recorded-local" / "0.jsonl")
    before = advice(browser)
    assert before["policies"]["can_start"]
    assert browser.post("/api/policies/?range=1h").status_code == 200
    assert advice(browser)["policies"]["is_running"]
    search = PolicySearch.objects.get()
    assert 1 < len(search.sizes) <= policy_search.MAX_SIZES
    assert search.seconds["computed"] == pytest.approx(0.002)
    while policies_due():
        pass
    told = advice(browser)
    assert told["policies"]["text"].startswith("Other policies and write modes were tried at ")
    assert len(told["policies"]["rows"]) == 5
    assert "of them with other policies or write modes" in told["text"]
    assert not any(row["setup"] for row in told["choices"]), "all of it has its place, whatever the policy"
    search.refresh_from_db()
    for result in search.results:
        result["hit"][1] += 0.1 * (result["setup"][1][0] == "arc")
    search.save()
    fastest = next(row for row in advice(browser)["choices"] if row["name"] == "Fastest")
    assert "with cpu ARC" in fastest["sentence"]
    assert fastest["setup"].startswith("cpu ARC")
    assert "points against LRU" in advice(browser)["policies"]["rows"][0]["text"]
    assert browser.post("/api/policies/?range=1h").status_code == 200
    assert len(advice(browser)["policies"]["rows"]) == 5, "what was found is there while it is tried again"
    PolicySearch.objects.exclude(pk=search.pk).delete()
    publish(cpu={"modes": {"policy": "arc", "write_mode": "write_back", "store_after_hits": 2, "load": "always"}})
    assert "try them again" in advice(browser)["policies"]["text"]


def test_only_staff_may_have_them_tried(browser: Client) -> None:
    User.objects.update(is_staff=False)
    assert browser.post("/api/policies/?range=1h").status_code == 403
