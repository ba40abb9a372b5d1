"""A replay is an engine like any other where it is chosen, and nowhere in what is said of "all engines" or of now."""

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from dashboard.metrics_watched import watched_families
from dashboard.models import Replay, Source
from dashboard.selectors.alert_conditions import findings
from dashboard.selectors.engine_list import engine_rows
from dashboard.selectors.engines import Fleet
from dashboard.selectors.period import Period, between
from dashboard.selectors.present import engines_and_models, freshness, has_traffic
from dashboard.selectors.replays import stretch
from dashboard.selectors.residency import residency_series
from dashboard.selectors.tenants import all_tenants, tenant_totals
from dashboard.selectors.tier_costs import tier_costs
from dashboard.selectors.tokens import token_series
from dashboard.selectors.totals import totals
from dashboard.selectors.what_if import engines_with_curves
from dashboard.services.recording import due_source_ids, record
from dashboard.valkey import client as valkey_client
from dashboard.what_if import default_engine
from tests.dashboard.replaying import forget, make, run, write_trace
from tests.dashboard.seeded import SeededEngine

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("valkey")]


@pytest.fixture
def replay(tmp_path: Path, settings: Any) -> Replay:
    """Of the last minutes."""
    settings.TIERSCOPE_HOME = tmp_path
    forget()
    write_trace()
    return run(make(now=datetime.now(UTC)))


@pytest.fixture
def live() -> SeededEngine:
    """100,000 prompt tokens at the same time."""
    engine, now = SeededEngine(), time.time()
    engine.scrape(now - 200, {"gpu": 1_000}, {"gpu": 2_000})
    engine.request(now - 200, {"gpu": 40_000}, 60_000, ttft=0.5, tenant="acme")
    engine.store(now)
    return engine


def period_of(replay: Replay) -> Period:
    lies = stretch(replay)
    assert lies is not None
    return between(*lies, now=time.time())


@pytest.mark.usefixtures("live")
def test_all_engines_are_without_replays_and_a_chosen_one_is_shown_by_itself(replay: Replay) -> None:
    period = period_of(replay)
    everything, chosen = totals(period), totals(period, engine=replay.name)
    assert everything["prompt_tokens"] == 100_000
    assert chosen["prompt_tokens"] == replay.counts["prompt_tokens"]
    assert chosen["hit_tokens"] == dict(replay.counts["hit_tokens"].items())
    assert sum(filter(None, token_series(period)["prompt"])) == 100_000
    assert tier_costs(period).prompt_tokens == 100_000
    assert sum(each.prompt_tokens for each in tenant_totals(period)) == 100_000
    assert max(filter(None, residency_series(period)["tiers"]["gpu"]["resident"])) == 1_000
    assert max(filter(None, residency_series(period, engine=replay.name)["tiers"]["gpu"]["resident"])) <= 320


@pytest.mark.usefixtures("live")
def test_it_is_among_the_engines_that_may_be_chosen_and_never_the_default(replay: Replay) -> None:
    known = engines_and_models()
    assert (known["engines"], known["replays"]) == (["local"], [replay.name])
    assert engines_with_curves() == ["local"]
    assert default_engine(Fleet({})) == "local"
    assert "team-0" not in all_tenants()


def test_it_is_no_source_that_is_read_late_or_told_to_prometheus(replay: Replay) -> None:
    now = datetime.now(UTC)
    source = Source.objects.get(pk=replay.source_id)
    Source.objects.filter(pk=source.pk).update(is_enabled=True)
    assert due_source_ids(now) == []
    assert not record(source.pk, now=now, connection=valkey_client())
    assert freshness(now) == []
    assert engine_rows(Fleet({}), now) == []
    assert all(
        finding.labels.get("source") != replay.name for finding in findings("source_stale", None, now.timestamp())
    )
    assert not [sample for family in watched_families(now) for sample in family.samples]


def test_only_replays_are_no_traffic_yet_unless_one_is_chosen(replay: Replay) -> None:
    assert not has_traffic()
    assert has_traffic(replay.name)


def test_the_pages_say_its_numbers_through_the_engine_filter(replay: Replay, client: Client) -> None:
    client.force_login(User.objects.create_user("ada", is_staff=True))
    lies = stretch(replay)
    assert lies is not None
    query: dict[str, str | int] = {"engine": replay.name, "start": lies[0], "end": lies[1]}
    tiles = client.get("/api/tiles.json", query).json()
    assert tiles["prompt_tokens"] == replay.counts["prompt_tokens"]
    assert client.get("/api/tiles.json", {"range": "1h"}).json()["prompt_tokens"] == 0
    tiers = client.get("/api/tiers.json", query).json()
    assert tiers["flows"]["rows"]
    assert replay.name in client.get("/", query).content.decode()


def test_the_what_if_page_predicts_from_it_and_agrees_with_what_was_replayed(replay: Replay, client: Client) -> None:
    client.force_login(User.objects.create_user("ada", is_staff=True))
    lies = stretch(replay)
    assert lies is not None
    query: dict[str, str | int] = {"engine": replay.name, "start": lies[0], "end": lies[1]}
    told = client.get("/api/what-if.json", query).json()
    assert told["obstacle"] == ""
    assert [tier["tier"] for tier in told["tiers"]] == ["gpu", "cpu", "disk"]
    for tier in ("gpu", "cpu", "disk"):
        assert told["predicted_today"]["hit"][tier] == pytest.approx(told["measured"]["hit"][tier], abs=0.05)
