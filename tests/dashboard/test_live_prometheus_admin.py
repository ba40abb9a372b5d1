"""Matchers are typed in the admin, and refused where they are none."""

import pytest
from django.test import Client
from django.utils import timezone

from dashboard.models import Discovery, Source
from dashboard.services.sources import target_of
from tests.dashboard.live_prometheus import source
from tests.dashboard.past import SELECTOR

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("valkey")]


def add(client: Client, **typed: str) -> str:
    form = {"name": "prod", "kind": "auto", "url": "http://127.0.0.1:1", "interval_seconds": "10", "is_enabled": "on"}
    return client.post("/admin/dashboard/source/add/", {**form, **typed}, follow=True).content.decode()


def test_the_form_takes_the_matchers_and_refuses_what_are_none(admin: Client) -> None:
    assert "Enter which series are this engine&#x27;s by their labels" in add(admin, selector="up")
    assert not Source.objects.exists()
    add(admin, selector=SELECTOR)
    assert target_of(Source.objects.get()).selector == SELECTOR


def test_other_matchers_are_another_engine_whose_first_reading_is_a_baseline(admin: Client) -> None:
    prod = source("http://127.0.0.1:1", kind="auto")
    prod.runs.create(engine="prod/0", read_at=timezone.now())
    form = {"name": "prod", "kind": "auto", "url": prod.url, "interval_seconds": "10", "is_enabled": "on"}
    admin.post(f"/admin/dashboard/source/{prod.pk}/change/", {**form, "selector": '{instance="gpu-9:8000"}'})
    assert not prod.runs.exists()


def test_a_discovery_has_matchers_for_a_prometheus_only(admin: Client) -> None:
    page = "/admin/dashboard/discovery/add/"
    form = {"name": "fleet", "kind": "http", "location": "http://127.0.0.1:1", "selector": '{job="vllm"}'}
    form |= {"source_kind": "auto", "interval_seconds": "10", "refresh_seconds": "60", "is_enabled": "on"}
    assert "only a Prometheus has series" in admin.post(page, form).content.decode()
    assert "by their labels" in admin.post(page, {**form, "kind": "prometheus", "selector": "up"}).content.decode()
    admin.post(page, {**form, "kind": "prometheus"})
    assert Discovery.objects.get().selector == '{job="vllm"}'
