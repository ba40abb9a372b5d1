"""Alerts are told to webhooks, also to those that are slow, down or odd."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from dashboard.models import AlertNotice, Source, Webhook
from dashboard.services import webhooks
from dashboard.services.alerts import evaluate
from dashboard.services.webhooks import tell_due
from dashboard.sources.http import ScrapeError
from tests.dashboard.alerting import at, receiving, recover, stale_source

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("valkey")]


@pytest.fixture
def source() -> Source:
    return stale_source()


@pytest.fixture
def webhook() -> Webhook:
    return Webhook.objects.create(name="pager", url="http://pager.invalid/")


def test_a_webhook_is_told_in_alertmanager_s_words(source: Source) -> None:
    with receiving() as receiver:
        Webhook.objects.create(name="pager", url=receiver.url, token="s3cret")
        evaluate(at(0))
        evaluate(at(5))
        recover(source, at(9))
        evaluate(at(9))
        assert tell_due(lambda: at(9)) == 2
        assert tell_due(lambda: at(10)) == 0
    firing, resolved = receiver.told
    labels = {"alertname": "TierscopeSourceStale", "severity": "warning", "source": "gpu-7"}
    annotations = {
        "summary": "gpu-7 could not be read lately: its numbers are old.",
        "runbook": "docs/runbook.md#source-stale",
    }
    assert firing == {
        "version": "4",
        "groupKey": '{}:{alertname="TierscopeSourceStale"}',
        "truncatedAlerts": 0,
        "status": "firing",
        "receiver": "pager",
        "groupLabels": {"alertname": "TierscopeSourceStale"},
        "commonLabels": labels,
        "commonAnnotations": annotations,
        "externalURL": "http://127.0.0.1:8000",
        "alerts": [
            {
                "status": "firing",
                "labels": labels,
                "annotations": annotations,
                "startsAt": "2026-01-02T03:05:00Z",
                "endsAt": "0001-01-01T00:00:00Z",
                "generatorURL": "http://127.0.0.1:8000/alerts/",
                "fingerprint": firing["alerts"][0]["fingerprint"],
            }
        ],
    }
    assert (resolved["status"], resolved["alerts"][0]["endsAt"]) == ("resolved", "2026-01-02T03:09:00Z")
    assert resolved["alerts"][0]["fingerprint"] == firing["alerts"][0]["fingerprint"]
    assert receiver.headers[0]["Authorization"] == "Bearer s3cret"
    assert not AlertNotice.objects.exists()


def test_alerts_of_one_kind_that_change_together_are_one_message(source: Source, webhook: Webhook) -> None:
    Source.objects.create(name="gpu-8", kind="vllm", last_ok_at=at(-60), last_scraped_at=at(-1))
    evaluate(at(0))
    evaluate(at(5))
    payload = AlertNotice.objects.get().payload
    assert [alert["labels"]["source"] for alert in payload["alerts"]] == ["gpu-7", "gpu-8"]
    assert payload["commonLabels"] == {"alertname": "TierscopeSourceStale", "severity": "warning"}


def test_a_webhook_may_leave_out_what_is_over(source: Source, webhook: Webhook) -> None:
    Webhook.objects.update(sends_resolved=False)
    evaluate(at(0))
    evaluate(at(5))
    recover(source, at(6))
    evaluate(at(6))
    assert [notice.payload["status"] for notice in AlertNotice.objects.all()] == ["firing"]


def tell_at(now: datetime, send: webhooks.Send) -> int:
    return tell_due(lambda: now, send)


class Sender:
    """Remembers what it was to send, outside of any transaction; fails while it is told to."""

    def __init__(self) -> None:
        self.is_down = True
        self.tries: list[str] = []
        self.were_in_transaction: list[bool] = []
        self.outer = len(connection.savepoint_ids)  # pytest-django's own

    def __call__(self, webhook: Webhook, payload: Mapping[str, Any]) -> None:
        self.were_in_transaction.append(len(connection.savepoint_ids) > self.outer)
        self.tries.append(f"{webhook.name} {payload['status']}")
        if self.is_down:
            raise ScrapeError("pager did not answer within 5 s.")


def test_a_webhook_that_is_down_is_tried_again_ever_later_and_told_in_order(source: Source, webhook: Webhook) -> None:
    sender, now = Sender(), at(5)
    evaluate(at(0))
    evaluate(now)
    recover(source, now)
    evaluate(now)
    pauses = []
    for _ in range(4):
        assert tell_at(now, sender) == 0
        due_at = AlertNotice.objects.order_by("pk")[0].due_at
        pauses.append((due_at - now).total_seconds())
        assert tell_at(due_at - timedelta(seconds=1), sender) == 0
        now = due_at
    assert pauses == [10, 20, 40, 80]
    assert sender.tries == ["pager firing"] * 4
    webhook.refresh_from_db()
    assert webhook.last_error == "pager did not answer within 5 s."
    sender.is_down = False
    assert tell_due(lambda: now, sender) == 2
    assert sender.tries[4:] == ["pager firing", "pager resolved"]
    webhook.refresh_from_db()
    assert (webhook.last_error, webhook.last_ok_at) == ("", now)
    assert not any(sender.were_in_transaction)


def test_one_webhook_that_is_down_does_not_keep_another_from_being_told(source: Source, webhook: Webhook) -> None:
    Webhook.objects.create(name="chat", url="http://chat.invalid/")
    told: list[str] = []

    def send(to: Webhook, payload: Mapping[str, Any]) -> None:
        if to.name == "pager":
            raise ScrapeError("pager is down.")
        told.append(to.name)

    evaluate(at(0))
    evaluate(at(5))
    assert tell_due(lambda: at(5), send) == 1
    assert told == ["chat"]


def test_many_slow_webhooks_end_a_turn_and_the_next_goes_on_with_the_others(source: Source, webhook: Webhook) -> None:
    for number in range(5):
        Webhook.objects.create(name=f"slow-{number}", url="http://slow.invalid/")
    now = at(5)
    asked: list[str] = []

    def send(to: Webhook, payload: Mapping[str, Any]) -> None:
        nonlocal now
        now += timedelta(seconds=10)
        asked.append(to.name)
        raise ScrapeError("it did not answer within 10 s.")

    evaluate(at(0))
    evaluate(now)
    assert tell_due(lambda: now, send) == 0
    assert len(asked) == 3
    tell_due(lambda: now, send)
    assert len(set(asked)) == 6


def test_what_could_not_be_told_for_a_day_is_dropped(source: Source, webhook: Webhook) -> None:
    sender = Sender()
    evaluate(at(0))
    evaluate(at(5))
    later = at(5) + webhooks.GIVEN_UP_AFTER + timedelta(seconds=1)
    tell_due(lambda: later, sender)
    assert sender.tries == ["pager firing"]
    assert not AlertNotice.objects.exists()


def test_a_claimed_notice_is_not_sent_by_somebody_else(source: Source, webhook: Webhook) -> None:
    evaluate(at(0))
    evaluate(at(5))
    others = Sender()

    def send(to: Webhook, payload: Mapping[str, Any]) -> None:
        tell_due(lambda: at(5), others)

    assert tell_due(lambda: at(5), send) == 1
    assert others.tries == []


@pytest.mark.parametrize(
    ("status", "sentence"),
    [(302, "127.0.0.1 answered with a redirect"), (500, "127.0.0.1 answered 500; expected 200 or another 2xx.")],
)
def test_an_answer_that_is_no_2xx_is_a_failure_and_redirects_are_not_followed(
    source: Source, status: int, sentence: str
) -> None:
    with receiving() as receiver:
        receiver.status = status
        Webhook.objects.create(name="pager", url=receiver.url)
        evaluate(at(0))
        evaluate(at(5))
        assert tell_due(lambda: at(5)) == 0
    assert Webhook.objects.get().last_error.startswith(sentence)


def test_a_webhook_is_made_tested_and_never_shows_its_token(admin: Client) -> None:
    with receiving() as receiver:
        typed = {"name": "pager", "url": receiver.url, "is_enabled": "on", "typed_token": "s3cret"}
        admin.post("/admin/dashboard/webhook/add/", typed)
        row = Webhook.objects.get()
        assert "s3cret" not in admin.get(f"/admin/dashboard/webhook/{row.pk}/change/").content.decode()
        sent = {"action": "test", "_selected_action": row.pk}
        page = admin.post("/admin/dashboard/webhook/", sent, follow=True).content.decode()
    assert "The webhook pager took a test alert." in page
    assert receiver.told[0]["alerts"][0]["labels"]["source"] == "test"


def test_an_address_that_is_none_is_refused_as_for_sources(admin: Client) -> None:
    for url in ("file:///etc/passwd", "http://user:pw@pager/"):
        page = admin.post("/admin/dashboard/webhook/add/", {"name": "pager", "url": url}).content.decode()
        assert "errorlist" in page
    assert not Webhook.objects.exists()
