"""Models: the engines that serve the same one are added up, hits over prompts, and worst first."""

import csv
import time
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from dashboard.models import Source
from dashboard.selectors import totals
from dashboard.selectors.fleet import EngineTokens
from dashboard.selectors.model_tokens import added
from dashboard.selectors.period import between
from tests.dashboard.seeded import SeededEngine, counted

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("valkey")]


@pytest.fixture
def browser(client: Client) -> Client:
    client.force_login(User.objects.create_user("ada", is_staff=True))
    return client


def rows(browser: Client, query: str = "range=15m") -> list[dict[str, Any]]:
    answer = browser.get(f"/api/models.json?{query}")
    assert answer.status_code == 200, answer.content
    told: list[dict[str, Any]] = answer.json()["rows"]
    return told


@pytest.fixture
def fleet(db: None) -> float:
    """A busy engine with few hits and an idle one with many serve "large"; one serves "small", one tells no model."""
    now = time.time()
    counted("a/0", hits={"gpu": 100}, computed=900, now=now, model="large")
    counted("b/0", hits={"gpu": 50, "disk": 40}, computed=10, now=now, model="large")
    counted("c/0", hits={"gpu": 9}, computed=1, now=now, model="small")
    counted("d/0", hits={"unattributed": 1}, computed=1, now=now, model="")
    Source.objects.update(kind="vllm")
    return now


def test_a_model_s_rate_is_its_engines_hits_over_their_prompts_and_no_mean_of_rates(
    browser: Client, fleet: float
) -> None:
    large = next(row for row in rows(browser) if row["model"] == "large")
    assert (large["prompt_tokens"], large["hit_rate"]) == (1100, 190 / 1100)
    assert [(part["origin"], part["tokens"]) for part in large["origins"]] == [
        ("gpu", 150),
        ("disk", 40),
        ("computed", 910),
    ]
    assert [rate for rate in large["rates"] if rate is not None] == [round(190 / 1100, 3)]


def test_a_model_s_numbers_are_those_of_the_totals_the_read_api_and_the_file(browser: Client, fleet: float) -> None:
    asked = f"{int(fleet) // 60 * 60 - 840}", f"{int(fleet) // 60 * 60 + 60}"
    period = between(float(asked[0]), float(asked[1]), now=fleet)
    told = {row["model"]: row for row in rows(browser, f"start={asked[0]}&end={asked[1]}")}
    file = browser.get(f"/api/charts/models.csv?start={asked[0]}&end={asked[1]}").content.decode()
    filed = {row["model"]: row for row in csv.DictReader(file.splitlines())}
    for model in ("large", "small"):
        summed = totals.totals(period, model_name=model)
        api = browser.get(f"/api/v1/totals?from={asked[0]}&to={asked[1]}&model={model}").json()
        hits = {part["origin"]: part["tokens"] for part in told[model]["origins"] if part["origin"] != "computed"}
        assert hits == summed["hit_tokens"] == api["hit_tokens"]
        assert told[model]["prompt_tokens"] == api["prompt_tokens"] == int(filed[model]["prompt_tokens"])
        assert told[model]["hit_rate"] == api["hit_rate"] == float(filed[model]["hit_rate"])
    assert filed["large"]["engines"] == "2"


def test_models_come_worst_first_and_one_that_is_not_told_is_unknown(browser: Client, fleet: float) -> None:
    Source.objects.filter(name="c").update(last_ok_at=None, last_scraped_at="2026-01-01T00:00:00Z")
    told = rows(browser)
    assert [row["name"] for row in told] == ["small", "large", "unknown"]
    assert [row["engine_names"] for row in told] == [[], [], ["d/0"]]
    assert (told[0]["wrong_text"], told[1]["wrong_text"]) == ("1 not read now", "")
    assert (told[1]["engines_text"], told[2]["note"]) == ("2 engines", "Their sources tell no model.")


def test_an_engine_that_tells_no_hits_is_in_the_sum_and_said(browser: Client, fleet: float) -> None:
    silent = SeededEngine(engine="e/0", model_name="small", source_name="e")
    silent.scrape(fleet - 100, {}, {})
    silent.add(fleet - 100, "prompt_tokens", 90)
    silent.store(fleet)
    small = next(row for row in rows(browser) if row["model"] == "small")
    assert (small["prompt_tokens"], small["hit_rate"]) == (100, 0.09)
    assert small["note"] == "1 engine tells no hits: their prompt tokens count as not hit."


def test_filters_keep_one_model_and_nothing_is_no_row(browser: Client, fleet: float) -> None:
    assert [row["model"] for row in rows(browser, "range=1h&model=large")] == ["large"]
    assert rows(browser, "range=1h&engine=nobody") == []
    assert browser.get("/api/models.json?range=2h").status_code == 400


_STEPS = st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), min_size=3, max_size=3)
_ENGINES = st.builds(
    EngineTokens,
    st.integers(0, 2**60),
    st.none() | st.integers(0, 2**60),
    st.dictionaries(st.sampled_from(["gpu", "disk"]), st.integers(0, 2**60)),
    _STEPS,
)


@given(st.lists(_ENGINES, max_size=6))
def test_sums_are_exact_whatever_the_engines_tell(engines: list[EngineTokens]) -> None:
    total = added(engines)
    assert total.prompt_tokens == sum(each.prompt_tokens for each in engines)
    told = [each.computed_tokens for each in engines if each.computed_tokens is not None]
    assert total.computed_tokens == (sum(told) if told else None)
    for tier in ("gpu", "disk"):
        assert total.hit_tokens.get(tier, 0) == sum(each.hit_tokens.get(tier, 0) for each in engines)
    assert total.steps == [
        tuple(map(sum, zip(*at, strict=True))) for at in zip(*(e.steps for e in engines), strict=True)
    ]
