"""The overview's JSON says what the store holds; strangers and bad addresses get a sentence."""

import time
from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from dashboard.models import TierChange, TotalChunk
from dashboard.views.time_charts import TIME_CHARTS
from tests.dashboard.live_engine import publish
from tests.dashboard.seeded import MODEL, SeededEngine, lively

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("valkey")]


@pytest.fixture
def browser(client: Client) -> Client:
    client.force_login(User.objects.create_user("ada"))
    return client


@pytest.fixture
def seeded() -> SeededEngine:
    engine = SeededEngine()
    now = time.time()
    for age in range(300, 0, -10):
        engine.scrape(now - age, {"gpu": 640}, {"gpu": 2080})
    engine.request(now - 200, {"gpu": 64, "disk": 32}, 20, ttft=0.15)
    engine.request(now - 100, {"gpu": 0, "disk": 0}, 50, ttft=0.4)
    engine.store(now)
    return engine


def get(browser: Client, address: str) -> Any:
    response = browser.get(address)
    assert response.status_code == 200, response.content
    return response.json()


@pytest.mark.usefixtures("seeded")
def test_the_tokens_chart_adds_up_to_what_was_stored(browser: Client) -> None:
    figure = get(browser, "/api/charts/tokens.json?range=15m")["figure"]
    tokens = {trace["name"]: sum(y * 10 for y in trace["y"] if y is not None) for trace in figure["data"]}
    assert {name: round(total) for name, total in tokens.items()} == {"gpu": 64, "disk": 32, "computed": 70}


@pytest.mark.usefixtures("seeded")
def test_a_stored_row_that_cannot_be_read_is_told_by_its_place_and_not_left_out(browser: Client) -> None:
    TotalChunk.objects.filter(resolution=10).update(packed=b"torn")
    for address in ("/api/charts/tokens.json?range=15m", "/api/v1/totals?range=15m"):
        User.objects.update(is_staff=True)
        response = browser.get(address)
        assert response.status_code == 500
        error = response.json()["error"]
        sentence = error if isinstance(error, str) else error["message"]
        assert sentence.startswith("A row of dashboard_totalchunk cannot be read (a chunk begins with 746f72")
        assert "resolution = 10 AND start_at = " in sentence
    get(browser, "/api/tiles.json?range=30d")


@pytest.mark.usefixtures("seeded")
def test_the_tiles_and_the_origins_say_the_same(browser: Client) -> None:
    answer = get(browser, "/api/tiles.json?range=15m")
    values = {tile["key"]: tile["value"] for tile in answer["tiles"]}
    assert (values["prompt_tokens"], values["computed_tokens"], values["requests"]) == ("166", "70", "2")
    assert values["hit_rate"] == f"{96 / 166 * 100:.1f} %"
    assert {origin["origin"]: origin["tokens"] for origin in answer["origins"]} == {
        "gpu": 64,
        "disk": 32,
        "computed": 70,
    }


def test_the_tenants_charts_and_rows_say_the_same(browser: Client) -> None:
    engine, now = SeededEngine(), time.time()
    engine.scrape(now - 100, {}, {})
    engine.request(now - 100, {"gpu": 64, "disk": 32}, 20, ttft=0.15, tenant="acme")
    engine.request(now - 100, {}, 50, ttft=0.4)
    engine.store(now)
    acme, common = get(browser, "/api/tenants.json?range=15m")["rows"]
    assert (acme["tenant"], acme["tokens"], acme["share_text"], acme["hit_rate_text"]) == (
        "acme",
        116,
        "69.9 %",
        "82.8 %",
    )
    assert {part["origin"]: part["tokens"] for part in acme["origins"]} == {"gpu": 64, "disk": 32, "computed": 20}
    assert (acme["requests"], common["requests"]) == ("/requests/?tenant=acme", "/requests/?tenant=common")
    assert (common["tenant"], common["tokens"], common["hit_rate_text"]) == ("common", 50, "0.0 %")
    tokens = get(browser, "/api/charts/tenant-tokens.json?range=15m")["figure"]["data"]
    assert {trace["name"]: round(sum(y * 10 for y in trace["y"] if y)) for trace in tokens} == {
        "acme": 116,
        "common": 50,
    }
    rates = get(browser, "/api/charts/tenant-hit-rate.json?range=15m")["figure"]["data"]
    drawn = {trace["name"]: [y for y in trace["y"] if y is not None] for trace in rates}
    assert drawn == {"acme": [round(96 / 116, 5)], "common": [0.0]}


@pytest.mark.usefixtures("seeded")
def test_the_tiers_page_s_cards_flows_and_chart_say_the_same(browser: Client) -> None:
    answer = get(browser, "/api/tiers.json?range=15m")
    cards = {card["tier"]: {fact["name"]: fact for fact in card["facts"]} for card in answer["cards"]}
    assert cards["disk"]["Prompt work saved"]["more"] == "32 hit tokens"
    assert cards["disk"]["Loaded"]["more"].startswith("2 blocks in 6 ms")
    assert {(row["from"], row["to"]): row["tokens"] for row in answer["flows"]["rows"]} == {
        ("computed", "gpu"): 64,
        ("gpu", "cpu"): 64,
        ("cpu", "disk"): 64,
        ("disk", "gpu"): 32,
    }
    figure = get(browser, "/api/charts/bandwidth.json?range=15m")["figure"]
    copied = {trace["name"]: sum(y * 10 for y in trace["y"] if y) for trace in figure["data"]}
    assert round(copied["disk loaded"]) == 2 * 737_280


def test_the_tiers_page_says_that_nothing_is_told_before_anything_is(browser: Client) -> None:
    answer = get(browser, "/api/tiers.json?range=15m")
    assert answer["flows"]["text"] == "No engine tells what moves between its tiers."
    assert [card["tier"] for card in answer["cards"]] == ["gpu", "cpu", "disk", "remote"]
    assert not answer["has_any_traffic"]


@pytest.mark.usefixtures("seeded")
@pytest.mark.parametrize("name", TIME_CHARTS)
def test_every_chart_draws_something_for_lively_traffic(browser: Client, name: str) -> None:
    figure = get(browser, f"/api/charts/{name}.json?range=15m")["figure"]
    assert any(y is not None for trace in figure["data"] for y in trace["y"])


@pytest.mark.parametrize("name", TIME_CHARTS)
def test_every_chart_answers_for_an_empty_store(browser: Client, name: str) -> None:
    figure = get(browser, f"/api/charts/{name}.json?range=30d")["figure"]
    assert all(y is None for trace in figure["data"] for y in trace["y"])


@pytest.mark.usefixtures("seeded")
def test_another_engine_and_another_model_have_nothing_of_it(browser: Client) -> None:
    for filters in ("engine=other", "model=other"):
        assert get(browser, f"/api/tiles.json?range=15m&{filters}")["prompt_tokens"] == 0
    assert get(browser, f"/api/tiles.json?range=15m&engine=local&model={MODEL}")["prompt_tokens"] == 166


@pytest.mark.usefixtures("seeded")
def test_a_change_of_a_tier_is_marked_on_every_chart(browser: Client) -> None:
    author = User.objects.create_user("<grace>")
    at = datetime.fromtimestamp(time.time() - 100, UTC)
    TierChange.objects.create(
        engine="local", cache_tier="cpu", action="resize", old_value="1 GiB", new_value="2 GiB", author=author, at=at
    )
    for name in TIME_CHARTS:
        marks = get(browser, f"/api/charts/{name}.json?range=15m")["figure"]["data"][-1]
        assert marks["text"] == ["local cpu resized: 1 GiB → 2 GiB (&lt;grace&gt;)"]


def test_no_traffic_at_all_is_told_apart_from_none_in_this_period(browser: Client) -> None:
    assert get(browser, "/api/tiles.json?range=5m")["has_any_traffic"] is False
    now = time.time()
    engine = SeededEngine()
    engine.request(now - 7200, {"gpu": 16}, 4, ttft=0.1)
    engine.store(now)
    answer = get(browser, "/api/tiles.json?range=5m")
    assert (answer["has_any_traffic"], answer["prompt_tokens"]) == (True, 0)


def test_a_source_that_was_not_read_lately_is_said_to_be_stale(browser: Client) -> None:
    lively(time.time() - 3600, seconds=60).store(time.time() - 3600)
    (source,) = get(browser, "/api/tiles.json")["sources"]
    assert source["is_stale"]
    assert source["text"].startswith("Source embedded is stale. Last read 60 minutes ago, not tried since")


def test_an_engine_that_loads_its_model_shows_how_far_it_is(browser: Client) -> None:
    publish("local", status="loading")
    (engine,) = get(browser, "/api/tiles.json")["engines"]
    assert (engine["status"], engine["progress_text"], engine["progress"]) == ("loading", "reading weights", 0.4)


def test_the_tiers_of_a_running_engine_are_shown_fastest_first(browser: Client) -> None:
    publish("local", disk={}, gpu={"used_bytes": 2**29})
    (engine,) = get(browser, "/api/tiles.json")["engines"]
    assert [tier["tier"] for tier in engine["tiers"]] == ["gpu", "disk"]
    assert engine["tiers"][0]["used_percent"] == 50.0
    assert engine["tiers"][0]["size_text"] == "512 MiB of 1 GiB"
    assert engine["tiers"][0]["resident_text"] == "5,824 resident tokens"


def test_a_tier_that_still_shrinks_says_so(browser: Client) -> None:
    publish("local", cpu={"used_bytes": 2**30 + 1})
    (engine,) = get(browser, "/api/tiles.json")["engines"]
    (tier,) = engine["tiers"]
    assert (tier["used_percent"], tier["size_text"]) == (100.0, "1 GiB of 1 GiB")
    assert tier["reason"].startswith("It still holds more than its new size")


def test_a_tier_that_is_off_is_shown_as_off_and_one_that_cannot_be_is_not_shown(browser: Client) -> None:
    none = {"capacity_bytes": 0, "used_bytes": 0}
    publish("local", gpu={}, cpu=none, remote=none | {"max_bytes": 0})
    (engine,) = get(browser, "/api/tiles.json")["engines"]
    assert {tier["tier"]: tier["size_text"] for tier in engine["tiers"]} == {"gpu": "256 MiB of 1 GiB", "cpu": "off"}


@pytest.mark.parametrize("address", ["/api/charts/tokens.json", "/api/tiles.json", "/api/tenants.json"])
def test_a_stranger_gets_401_and_a_sentence_instead_of_a_page(client: Client, address: str) -> None:
    response = client.get(address)
    assert (response.status_code, response.json()["error"]) == (401, "Log in first: your session has ended.")


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("/api/charts/tokens.json?range=2h", "range is “2h”"),
        ("/api/charts/pie.json", "There is no chart “pie”"),
        ("/api/tiles.json?start=x&end=y", "start is “x”"),
        ("/api/tiles.json?engine=a%00b", "engine is not a name"),
    ],
)
def test_a_bad_address_is_400_and_one_sentence(browser: Client, address: str, sentence: str) -> None:
    response = browser.get(address)
    assert response.status_code == 400
    assert response.json()["error"].startswith(sentence)


def test_reading_is_not_posting(browser: Client) -> None:
    assert browser.post("/api/tiles.json").status_code == 405
    assert browser.get("/api/sample-traffic/").status_code == 405


def test_the_sample_traffic_says_why_it_cannot_start(browser: Client) -> None:
    response = browser.post("/api/sample-traffic/")
    assert response.status_code == 400
    assert "key" in response.json()["error"]


def test_numbers_are_never_kept_by_a_cache(browser: Client) -> None:
    assert browser.get("/api/tiles.json")["Cache-Control"] == "no-store"
