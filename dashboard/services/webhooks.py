"""Tells webhooks what was put down for them: in order, again after a failure, for a day. Never within a transaction.

A notice is claimed by moving its `due_at`, so that several workers send it once; a worker that dies meanwhile sends it
again later: receivers know alerts by their fingerprints.
"""

import logging
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Min

from dashboard.models import Alert, AlertNotice, AlertRule, Webhook
from dashboard.services.alert_payload import payloads
from dashboard.services.sources import access_of
from dashboard.sources.http import ScrapeError, post_json

_log = logging.getLogger(__name__)

CLAIM = timedelta(seconds=60)  # longer than a try takes
FIRST_PAUSE = timedelta(seconds=10)
LONGEST_PAUSE = timedelta(hours=1)
GIVEN_UP_AFTER = timedelta(days=1)
TURN = timedelta(seconds=30)  # the rest goes to the next turn
_ERROR_LENGTH = 1000

Send = Callable[[Webhook, Mapping[str, Any]], None]


def send(webhook: Webhook, payload: Mapping[str, Any]) -> None:
    """Raises ScrapeError."""
    access = access_of(webhook)
    post_json(webhook.url, payload, headers=access.headers, tls=access.tls)


def send_test(webhook: Webhook, now: datetime) -> None:
    """An alert that is none, so that somebody sees that it arrives. Raises ScrapeError."""
    rule = AlertRule(kind=AlertRule.Kind.SOURCE_STALE)
    alert = Alert(rule=rule, labels={"source": "test"}, fingerprint="0" * 16, state=Alert.State.FIRING, firing_at=now)
    alert.summary = f"A test: Tierscope tells {webhook.name} of alerts."
    for payload in payloads([alert], webhook.name):
        send(webhook, payload)


def tell_due(clock: Callable[[], datetime], send: Send = send) -> int:
    """Every webhook's oldest notice whose time has come, then the next one; how many were told."""
    num_told, ends_at = 0, clock() + TURN
    progress = True
    while progress and clock() < ends_at:
        told = [_tell(notice, clock, send) for notice in _first_of_each() if clock() < ends_at]
        num_told, progress = num_told + sum(told), any(told)
    return num_told


def _first_of_each() -> list[AlertNotice]:
    """A webhook hears of an alert's end after its beginning: a later notice waits for an earlier one. Who was tried
    longest ago comes first, so that slow ones keep no other waiting.
    """
    first = AlertNotice.objects.order_by().values("webhook").annotate(first=Min("pk")).values("first")
    return list(AlertNotice.objects.filter(pk__in=first).select_related("webhook").order_by("due_at", "pk"))


def _tell(notice: AlertNotice, clock: Callable[[], datetime], send: Send) -> bool:
    """Whether the webhook's next notice may follow at once."""
    now = clock()
    if not notice.webhook.is_enabled:
        notice.delete()
        return True
    if not _claim(notice, now):
        return False
    try:
        send(notice.webhook, notice.payload)
    except ScrapeError as error:
        return _failed(notice, str(error), clock())
    Webhook.objects.filter(pk=notice.webhook_id).update(last_ok_at=clock(), last_error="")
    notice.delete()
    return True


def _claim(notice: AlertNotice, now: datetime) -> bool:
    mine = AlertNotice.objects.filter(pk=notice.pk, due_at=notice.due_at, due_at__lte=now)
    return bool(mine.update(due_at=now + CLAIM))


def _failed(notice: AlertNotice, reason: str, now: datetime) -> bool:
    """10 s, 20 s, 40 s, … an hour; after a day it is dropped, and those behind it are told."""
    Webhook.objects.filter(pk=notice.webhook_id).update(last_error=reason[:_ERROR_LENGTH])
    if now - notice.created_at > GIVEN_UP_AFTER:
        _log.warning("The webhook %s was not told for a day, and will not be: %s", notice.webhook.name, reason)
        notice.delete()
        return True
    pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(notice.num_tries, 16))
    AlertNotice.objects.filter(pk=notice.pk).update(due_at=now + pause, num_tries=notice.num_tries + 1)
    return False
