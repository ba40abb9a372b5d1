"""The recording that a worker makes when it leaves: what an engine counted since the last one is not lost overnight."""

from types import SimpleNamespace

import pytest
from django.utils import timezone

from dashboard import valkey
from dashboard.services.recording import record
from dashboard.services.sources import ensure_embedded
from dashboard.tasks import record_once_more
from tests.dashboard.told import Engine, stored

pytestmark = [pytest.mark.usefixtures("valkey"), pytest.mark.django_db]


def leaving(*queues: str) -> SimpleNamespace:
    """What Celery hands to a shutdown handler, as far as it is read."""
    return SimpleNamespace(app=SimpleNamespace(amqp=SimpleNamespace(queues=SimpleNamespace(consume_from=queues))))


def test_what_an_engine_counted_before_its_stop_is_booked_at_once() -> None:
    now = timezone.now()
    engine = Engine()
    engine.serve({"gpu": 48}, computed=52)
    engine.publish(now.timestamp() - 2)
    source = ensure_embedded()
    assert record(source.pk, now=timezone.now(), connection=valkey.client())
    engine.serve({"disk": 32}, computed=18)
    engine.publish(now.timestamp() - 1, is_alive=False)
    record_once_more(leaving("default"))
    assert stored(10) == engine.truth


def test_a_worker_that_hosts_an_engine_leaves_recording_to_the_others() -> None:
    engine = Engine()
    engine.serve({"gpu": 48}, computed=52)
    engine.publish(timezone.now().timestamp())
    record_once_more(leaving("engine.local"))
    assert not stored(10)
