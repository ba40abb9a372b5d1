"""The recording tasks over a real broker, and one real engine's own text from its counters to the selectors."""

import json
from collections.abc import Iterator
from itertools import accumulate, chain

import pytest
from django.conf import settings
from django.utils import timezone

from dashboard import valkey
from dashboard.engine_metrics import EngineCollector, Exposition
from dashboard.models import Source
from dashboard.selectors.period import last
from dashboard.selectors.residency import residency_series
from dashboard.selectors.tokens import token_series
from dashboard.selectors.totals import totals
from dashboard.services.recording import record
from dashboard.services.sources import ensure_embedded
from dashboard.sources.detection import read
from dashboard.sources.tables.tierscope import TIERSCOPE
from dashboard.tasks import expire, record_due, record_source
from tests.dashboard.told import Engine, moment, stored
from tests.engine.harness import BLOCK_SIZE, Rig, make_rig
from tests.stored import rows

pytestmark = [pytest.mark.usefixtures("valkey"), pytest.mark.django_db]


@pytest.fixture
def rig() -> Iterator[Rig]:
    rig = make_rig(gpu=8, cpu=16)
    yield rig
    rig.close()


def exposition(rig: Rig) -> str:
    collector = EngineCollector(rig.engine.snapshot, engine="local", model_name="mock", block_size=BLOCK_SIZE)
    return Exposition(collector).text()


def publish(rig: Rig, at: float) -> None:
    told = {"boot_id": "b", "at": at, "exposition": exposition(rig)}
    valkey.client().set(valkey.engine_key("local"), json.dumps(told))


def test_every_due_source_gets_one_message_on_the_default_queue() -> None:
    assert record_due() == 1
    (source,) = Source.objects.all()
    queued = [json.loads(str(text)) for text in valkey.client().lrange("default", 0, -1)]
    assert [message["headers"]["task"] for message in queued] == ["dashboard.tasks.record_source"]
    assert f"'source_id': {source.pk}" in queued[0]["headers"]["kwargsrepr"]


def test_a_recording_task_books_and_tells_pages_once() -> None:
    engine, source = Engine(), ensure_embedded()
    engine.serve({"gpu": 16}, computed=4)
    engine.publish(timezone.now().timestamp())
    assert record_source(source_id=source.pk)
    assert not record_source(source_id=source.pk)
    assert stored(10) == +engine.truth


def test_a_task_for_a_source_that_was_deleted_does_nothing() -> None:
    assert not record_source(source_id=10**9)


def test_expiry_runs_on_an_empty_store() -> None:
    expire()


def test_the_beat_schedule_names_tasks_that_exist() -> None:
    from dashboard.celery import app

    app.loader.import_default_modules()
    assert {entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()} <= set(app.tasks)


def test_a_real_engines_own_text_has_every_name_of_our_table(rig: Rig) -> None:
    rig.ask("r1", range(1, 20))
    adapted = read(exposition(rig), "auto")
    told = {key.metric for key in (*adapted.counters, *adapted.gauges)}
    assert adapted.kind == "tierscope"
    assert told == {rule.metric.value for rule in TIERSCOPE.rules}
    assert adapted.problems == ()


def test_what_a_real_engine_answered_is_what_charts_get(rig: Rig) -> None:
    source, start = ensure_embedded(), 1_800_000_000
    prompts = [list(range(1 + 30 * n % 90, 26 + 30 * n % 90)) for n in range(9)]
    usages = [rig.ask(f"r{index}", prompt).usage for index, prompt in enumerate(prompts)]
    publish(rig, start)
    Source.objects.update(due_at=moment(start))
    record(source.pk, now=moment(start), connection=valkey.client())

    period = last(300, now=start)
    found, counted = token_series(period), totals(period)
    hits = {str(tier): sum(usage.hit_tokens[tier] for usage in usages) for tier in usages[0].hit_tokens}
    charted = {tier: sum(filter(None, values)) for tier, values in found["hit"].items()}
    assert charted == {tier: tokens for tier, tokens in hits.items() if tokens}
    assert hits["cpu"] > 0
    assert hits["gpu"] + hits["cpu"] + sum(filter(None, found["computed"])) == sum(map(len, prompts))
    assert counted["prompt_tokens"] == sum(map(len, prompts))
    assert counted["requests"] == sum(counted["finish_reasons"].values()) == 9
    assert counted["generated_tokens"] == sum(usage.generated_tokens for usage in usages)
    tiers = residency_series(period)["tiers"]
    assert [value for value in tiers["gpu"]["capacity"] if value is not None] == [8 * BLOCK_SIZE]
    ttft = [row.value for row in rows(resolution=10, metric="ttft")]
    assert list(accumulate(chain(ttft)))[-1] == 9
