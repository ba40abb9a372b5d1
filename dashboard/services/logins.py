"""Forgets what no login needs any more: sessions that are over, wrong passwords that count no longer."""

from datetime import datetime

from axes.models import AccessAttempt
from django.conf import settings
from django.contrib.sessions.models import Session


def expire(*, now: datetime) -> int:
    """How many rows went. Django and django-axes delete theirs only when the same person comes again."""
    over = Session.objects.filter(expire_date__lt=now)
    forgotten = AccessAttempt.objects.filter(attempt_time__lt=now - settings.AXES_COOLOFF_TIME)
    return int(over.delete()[0]) + int(forgotten.delete()[0])
