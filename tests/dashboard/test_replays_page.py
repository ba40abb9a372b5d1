"""The page of replays and what is done there: for staff, with a sentence for what cannot be."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from dashboard.models import Replay
from dashboard.trace_folder import trace_path
from tests.dashboard.replaying import forget, make, requests, run, wishes, write_trace

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("home", "valkey")]


@pytest.fixture
def home(tmp_path: Path, settings: Any) -> Path:
    settings.TIERSCOPE_HOME = tmp_path
    forget()
    return tmp_path


@pytest.fixture
def staff(client: Client) -> Client:
    client.force_login(User.objects.create_user("ada", is_staff=True))
    return client


def post(client: Client, **typed: str) -> Any:
    fields = {"file": "week.jsonl", "gpu_size": "20", "cpu_size": "2k tokens", "bytes_a_token": "45 KiB", "when": "now"}
    return client.post("/replays/", {**fields, **typed})


def test_whoever_is_no_staff_sees_and_does_nothing(client: Client) -> None:
    client.force_login(User.objects.create_user("bob"))
    assert client.get("/replays/").status_code == 403
    for method, path in (("get", "/api/replays.json"), ("post", "/api/traces/a/"), ("post", "/api/replays/1/cancel/")):
        answer = getattr(client, method)(path)
        assert (answer.status_code, answer.json()["error"]) == (403, "Only staff may do this.")
    assert "/replays/" not in client.get("/").content.decode()


def test_a_replay_is_begun_by_the_form_and_shown_with_its_tiers(staff: Client) -> None:
    write_trace()
    assert post(staff, cpu_mode="write_through", gpu_policy="arc", disk_size="1 GiB").status_code == 302
    replay = Replay.objects.get()
    assert (replay.name, replay.state, replay.author) == ("week", "waiting", User.objects.get(username="ada"))
    (row,) = staff.get("/api/replays.json").json()["replays"]
    assert row["progress"] == "waiting for the worker"
    assert row["tiers"] == [
        "gpu 20 blocks, ARC",
        "cpu 2,000 tokens, LRU, write through",
        "disk 1 GiB, LRU, write back",
    ]
    run(replay)
    (row,) = staff.get("/api/replays.json").json()["replays"]
    assert row["state"] == "done"
    assert sum(origin["percent"] for origin in row["origins"]) == pytest.approx(100, abs=0.01)
    for link in row["links"]:
        assert staff.get(link["url"]).status_code == 200


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ({"gpu_size": "lots"}, "is no size of a tier"),
        ({"gpu_size": ""}, "This field is required"),
        ({"gpu_size": "0"}, "at least one block"),
        ({"file": "../secret-key"}, "Select a valid choice"),
        ({"name": "local"}, "embedded engine"),
        ({"name": "white space"}, "valid value"),
        ({"bytes_a_token": "heavy"}, "is not a size"),
        ({"when": "at"}, "Type when it is to start"),
        ({"store_after_hits": "0", "cpu_mode": "write_selective", "disk_size": "-3"}, "is no size"),
    ],
)
def test_what_is_typed_wrong_is_said_and_nothing_is_stored(staff: Client, typed: dict[str, str], sentence: str) -> None:
    write_trace()
    answer = post(staff, **typed)
    assert answer.status_code == 400
    assert sentence in answer.content.decode()
    assert not Replay.objects.exists()


def test_more_replays_than_a_page_holds_have_pages(staff: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashboard.selectors.replays.PAGE_SIZE", 2)
    write_trace()
    names = [make(f"run-{number}").name for number in range(5)][::-1]
    told = [staff.get(f"/api/replays.json?page={page}").json() for page in (1, 2, 3, 9, "x")]
    assert [[row["name"] for row in page["replays"]] for page in told] == [
        names[:2],
        names[2:4],
        names[4:],
        names[4:],
        names[:2],
    ]
    assert [(page["page"], page["num_pages"]) for page in told] == [(1, 3), (2, 3), (3, 3), (3, 3), (1, 3)]


def test_a_trace_of_many_years_opens_on_every_page(staff: Client) -> None:
    write_trace()
    replay = make()
    run(replay)
    replay.refresh_from_db()
    Replay.objects.update(starts_at=0, extent=replay.extent | {"seconds": 20 * 366 * 86_400})
    (row,) = staff.get("/api/replays.json").json()["replays"]
    for link in row["links"]:
        query = link["url"].partition("?")[2]
        for path in ("/api/tiles.json", "/api/tiers.json", "/api/what-if.json", "/api/charts/tokens.json"):
            assert staff.get(f"{path}?{query}").status_code == 200, path


def test_cancel_resume_and_remove(staff: Client) -> None:
    write_trace()
    replay = make()
    for action, state in (("cancel", "cancelled"), ("resume", "waiting"), ("cancel", "cancelled")):
        assert staff.post(f"/api/replays/{replay.pk}/{action}/").status_code == 200
        replay.refresh_from_db()
        assert replay.state == state
    assert staff.post(f"/api/replays/{replay.pk}/remove/").status_code == 200
    assert not Replay.objects.exists()
    for path in (f"/api/replays/{replay.pk}/cancel/", "/api/replays/1/explode/"):
        assert staff.post(path).status_code == 400


def test_a_trace_is_uploaded_in_pieces_and_can_be_deleted_when_no_replay_needs_it(staff: Client) -> None:
    text = "".join(json.dumps(each) + "\n" for each in requests(20)).encode()
    for offset in range(0, len(text), 1000):
        piece, last = text[offset : offset + 1000], int(offset + 1000 >= len(text))
        address = f"/api/traces/mine.jsonl/?offset={offset}&last={last}"
        assert staff.post(address, piece, content_type="application/octet-stream").status_code == 200
    assert trace_path("mine.jsonl").read_bytes() == text
    assert [each["name"] for each in staff.get("/api/replays.json").json()["files"]] == ["mine.jsonl"]
    replay = make(file_name="mine.jsonl")
    assert "cancel it first" in staff.post("/api/traces/mine.jsonl/remove/").json()["error"]
    run(replay)
    assert staff.post("/api/traces/mine.jsonl/remove/").status_code == 200
    assert "no trace" in staff.post("/api/traces/mine.jsonl/remove/").json()["error"]


@pytest.mark.parametrize("address", ["?offset=x", "", "?offset=5"])
def test_a_piece_that_does_not_fit_is_refused(staff: Client, address: str) -> None:
    answer = staff.post(f"/api/traces/mine.jsonl/{address}", b"x", content_type="application/octet-stream")
    assert answer.status_code == 400


def test_runs_are_compared_side_by_side(staff: Client) -> None:
    write_trace()
    small, large = run(make("small", tiers=wishes({"gpu": "16"}))), run(make("large", tiers=wishes({"gpu": "90"})))
    told = staff.get(f"/api/replays/compared.json?ids={small.pk},{large.pk},999").json()
    assert told["names"] == ["small", "large"]
    cells = {row["name"]: row["cells"] for row in told["rows"]}
    assert cells["Tiers"] == ["gpu 16 blocks, LRU", "gpu 90 blocks, LRU"]
    assert cells["Prompt tokens"][0] == cells["Prompt tokens"][1]
    rates = [float(cell.removesuffix(" %")) for cell in cells["Hit rate"]]
    assert rates[0] < rates[1]
    assert told["note"] == ""
    assert [trace["name"] for trace in told["figure"]["data"]] == ["small", "large"]
    assert all(any(rate is not None for rate in trace["y"]) for trace in told["figure"]["data"])
    assert staff.get("/api/replays/compared.json?ids=999,x").status_code == 400


def test_runs_of_other_prompts_are_said_to_be(staff: Client) -> None:
    write_trace()
    write_trace("other.jsonl", requests(50))
    ids = ",".join(str(run(make(name, file_name=f"{name}.jsonl")).pk) for name in ("week", "other"))
    assert "not gone through the same prompts" in staff.get(f"/api/replays/compared.json?ids={ids}").json()["note"]
