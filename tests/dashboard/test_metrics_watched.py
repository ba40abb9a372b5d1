"""Watched engines on /metrics: one family with our own, what they told last, and nothing of those that are not read."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from dashboard import valkey as names
from dashboard.models import EngineRun, Source
from dashboard.services.recording import record

pytestmark = [pytest.mark.usefixtures("valkey"), pytest.mark.django_db]

VLLM = """vllm:prompt_tokens_total{engine="0",model_name="m"} 1000
vllm:prompt_tokens_by_source_total{engine="0",model_name="m",source="local_compute"} 600
vllm:prompt_tokens_cached_by_source_total{engine="0",model_name="m",source="device"} 300
vllm:prompt_tokens_cached_by_source_total{engine="0",model_name="m",source="host"} 100
"""
SGLANG = """sglang:prompt_tokens_total{model_name="m"} 50
sglang:cached_tokens_total{model_name="m",cache_source="total"} 20
"""


@pytest.fixture
def reexport(settings: Any) -> None:
    settings.REEXPORT = True


def watched(name: str, text: str) -> Source:
    source = Source.objects.create(name=name, url=f"http://{name}/metrics", due_at=timezone.now())
    assert record(source.pk, now=timezone.now(), connection=names.client(), fetch_text=lambda target: text)
    return source


def told(name: str) -> dict[tuple[str, ...], float]:
    accept = "application/openmetrics-text;version=1.0.0"
    text = Client().get("/metrics", headers={"Accept": accept}).content.decode()
    return {
        tuple(
            sample.labels.get(label, "") for label in ("engine", "source", "cache_tier") if label in sample.labels
        ): sample.value
        for family in text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
        for sample in family.samples
        if sample.name == name
    }


def test_a_mixed_fleet_is_one_family_with_our_own_engines(reexport: None) -> None:
    own = (
        '# TYPE tierscope_prompt_tokens_total counter\ntierscope_prompt_tokens_total{engine="local",model_name="s"} 7\n'
    )
    names.client().set(names.engine_key("local"), json.dumps({"boot_id": "b", "exposition": own}))
    watched("east", VLLM)
    watched("west", SGLANG)
    assert told("tierscope_prompt_tokens_total") == {("local",): 7, ("east/0",): 1000, ("west",): 50}
    assert told("tierscope_cached_prompt_tokens_total") == {
        ("east/0", "gpu"): 300,
        ("east/0", "cpu"): 100,
        ("west", "unattributed"): 20,
    }
    assert told("tierscope_computed_prompt_tokens_total") == {("east/0",): 600}
    assert told("tierscope_source_up") == {("east",): 1, ("west",): 1}


def test_an_engine_that_is_not_read_now_has_no_counters_and_says_so(reexport: None) -> None:
    watched("east", VLLM)
    Source.objects.update(last_ok_at=timezone.now() - timedelta(minutes=5))
    assert told("tierscope_prompt_tokens_total") == {}
    assert told("tierscope_source_up") == {("east",): 0}


def test_a_replica_that_went_is_not_told_although_its_source_is(reexport: None) -> None:
    source = watched("east", VLLM)
    later = timezone.now() + timedelta(seconds=60)
    Source.objects.update(due_at=later)
    text = VLLM.replace('engine="0"', 'engine="1"')
    assert record(source.pk, now=later, connection=names.client(), fetch_text=lambda target: text)
    assert told("tierscope_prompt_tokens_total") == {("east/1",): 1000}


def test_what_is_switched_off_or_gone_is_not_told(reexport: None) -> None:
    watched("east", VLLM)
    Source.objects.update(is_enabled=False)
    assert told("tierscope_source_up") == {}
    Source.objects.update(is_enabled=True, gone_at=timezone.now())
    assert told("tierscope_source_up") == {}


def test_nothing_of_it_is_there_unless_it_is_asked_for() -> None:
    watched("east", VLLM)
    assert told("tierscope_prompt_tokens_total") == {}
    assert told("tierscope_source_up") == {}


def test_counters_that_are_damaged_leave_only_their_engine_out(reexport: None) -> None:
    east = watched("east", VLLM)
    watched("west", SGLANG)
    EngineRun.objects.filter(source=east).update(counters=b"torn")
    assert told("tierscope_prompt_tokens_total") == {("west",): 50}
