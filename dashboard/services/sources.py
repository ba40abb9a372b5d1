"""Every write of sources: the embedded one, and engines that somebody asks to be watched. Records nothing."""

from datetime import datetime
from urllib.parse import urlsplit

import redis
from django.core.exceptions import ValidationError

from dashboard import valkey
from dashboard.models import Source
from dashboard.sources.exposition import ExpositionError, parse
from dashboard.sources.http import ScrapeError, fetch
from dashboard.sources.watched import Fetch, OwnEngineError, refuse_own

EMBEDDED_NAME = "embedded"
EMBEDDED_INTERVAL_SECONDS = (
    5  # reading our own snapshot is one Valkey call: pages may be livelier than for watched engines
)


def ensure_embedded() -> Source:
    """The source of the embedded engines; made at the first call."""
    source, _ = Source.objects.get_or_create(
        kind=Source.Kind.EMBEDDED,
        defaults={"name": EMBEDDED_NAME, "interval_seconds": EMBEDDED_INTERVAL_SECONDS},
    )
    return source


def add_source(
    name: str, url: str, *, kind: str, interval_seconds: int, now: datetime, fetch_text: Fetch | None = None
) -> Source:
    """Watches one more engine. Raises ValidationError with sentences for a person."""
    source = Source(name=name, url=url, kind=kind, interval_seconds=interval_seconds, due_at=now)
    check_url(url)
    source.full_clean()
    check_not_ours(url, fetch_text or fetch)
    source.save()
    return source


def start_over(source: Source) -> None:
    """Its address or kind changed: the next reading is another engine's, so it is a baseline and not an increase."""
    source.runs.filter(boot_id="").delete()


def check_not_ours(url: str, fetch_text: Fetch) -> None:
    """Raises ValidationError where our own engines are told at `url`. What cannot be read now is read later."""
    try:
        refuse_own(parse(fetch_text(url)), valkey.client())
    except OwnEngineError as own:
        raise ValidationError({"url": str(own)}) from None
    except (ScrapeError, ExpositionError, redis.RedisError):
        return


def check_url(url: str) -> None:
    """Raises ValidationError unless `url` is an http(s) address without credentials (they would be shown in pages)."""
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValidationError({"url": "Enter the metrics address, like http://gpu-7:8000/metrics."})
    if parts.username or parts.password:
        raise ValidationError({"url": "Leave the user name and password out of the address: it is shown on pages."})
