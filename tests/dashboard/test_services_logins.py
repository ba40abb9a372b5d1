"""Sessions and wrong passwords do not pile up, and nobody who is logged in or throttled notices."""

from datetime import datetime, timedelta

import pytest
from axes.models import AccessAttempt
from django.contrib.sessions.models import Session
from django.utils import timezone

from dashboard import tasks
from dashboard.services.logins import expire

pytestmark = pytest.mark.django_db


def session(key: str, ends_at: datetime) -> None:
    Session.objects.create(session_key=key, session_data="", expire_date=ends_at)


def wrong_password(name: str, at: datetime) -> None:
    attempt = AccessAttempt.objects.create(
        username=name, ip_address="192.0.2.1", user_agent="", failures_since_start=1, get_data="", post_data=""
    )
    AccessAttempt.objects.filter(pk=attempt.pk).update(attempt_time=at)


def test_what_is_over_goes_and_what_is_not_stays() -> None:
    now = timezone.now()
    session("over", now - timedelta(seconds=1))
    session("open", now + timedelta(days=1))
    wrong_password("yesterday", now - timedelta(days=1))
    wrong_password("now", now - timedelta(minutes=4))
    assert expire(now=now) == 2
    assert list(Session.objects.values_list("session_key", flat=True)) == ["open"]
    assert list(AccessAttempt.objects.values_list("username", flat=True)) == ["now"]


def test_the_task_that_expires_data_does_it() -> None:
    session("over", timezone.now() - timedelta(seconds=1))
    tasks.expire()
    assert not Session.objects.exists()
