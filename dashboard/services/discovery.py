"""Lets fleets come and go by themselves: reads lists of targets and makes sources of them. Scrapes no engine.

A list that cannot be read changes nothing. A target that is not listed any more is gone: its source is not read, keeps
its series, and goes on when it is listed again.
"""

import logging
from collections import Counter
from collections.abc import Callable, Set
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction

from dashboard.models import Discovery, Source
from dashboard.services import claims
from dashboard.services.source_names import own_engines
from dashboard.services.sources import access_of, start_over, typed_adapter
from dashboard.sources.discovery import DiscoveryError, Found, found, read_files, source_name
from dashboard.sources.exposition import ExpositionError
from dashboard.sources.http import ScrapeError, fetch
from dashboard.sources.prometheus_targets import targets_now

_log = logging.getLogger(__name__)
_ERROR_LENGTH = 1000
_BATCH = 200

ReadTargets = Callable[[Discovery, datetime], list[Found]]


@dataclass(frozen=True)
class Changed:
    """How many sources came, were back, went, and are read elsewhere."""

    come: int = 0
    back: int = 0
    gone: int = 0
    moved: int = 0


def read_targets(discovery: Discovery, now: datetime) -> list[Found]:
    """What is listed. Raises DiscoveryError, ScrapeError or ExpositionError."""
    if discovery.kind == Discovery.Kind.FILE:
        return found(read_files(discovery.location))
    access = access_of(discovery)
    if discovery.kind == Discovery.Kind.PROMETHEUS:
        typed = typed_adapter(discovery.mapping) if discovery.mapping else None
        return targets_now(discovery.location, discovery.selector, discovery.source_kind, typed, now, access)
    return found(fetch(discovery.location, headers=access.headers, tls=access.tls, accept="application/json"))


def due_ids(now: datetime) -> list[int]:
    rows = Discovery.objects.filter(is_enabled=True).exclude(due_at__gt=now, due_at__lte=now + claims.SOON)
    told = rows.order_by("due_at").values_list("pk", "due_at", "refresh_seconds")
    return [pk for pk, due_at, refresh_seconds in told if claims.is_due(due_at, refresh_seconds, now)]


def refresh_due(now: datetime, read: ReadTargets = read_targets) -> int:
    """Every list whose time has come; how many were read. What nobody thought of ends one list, not those after it."""
    num_read = 0
    for pk in due_ids(now):
        try:
            num_read += refresh(pk, now=now, read=read) is not None
        except Exception as error:
            _log.exception("The list %s could not be read.", pk)
            told = f"The list could not be read ({type(error).__name__}); the worker's log says more."
            Discovery.objects.filter(pk=pk).update(last_error=told, last_tried_at=now)
    return num_read


def refresh(discovery_id: int, *, now: datetime, read: ReadTargets = read_targets) -> Changed | None:
    """Reads one due list and changes its sources; None where it is not due, another was first, or it cannot be read."""
    discovery = _claim(discovery_id, now)
    if discovery is None:
        return None
    try:
        targets = read(discovery, now)
    except (DiscoveryError, ScrapeError, ExpositionError) as error:
        _finish(discovery, now, last_error=str(error)[:_ERROR_LENGTH])
        return None
    with transaction.atomic():
        if not _finish(discovery, now, last_error="", last_ok_at=now, last_num_targets=len(targets)):
            return None
        return _change(discovery, targets, now)


def _claim(discovery_id: int, now: datetime) -> Discovery | None:
    discovery = Discovery.objects.filter(pk=discovery_id, is_enabled=True).first()
    if discovery is None or not claims.is_due(discovery.due_at, discovery.refresh_seconds, now):
        return None
    return discovery if claims.claim(discovery, now) else None


def _finish(discovery: Discovery, now: datetime, **told: object) -> bool:
    """Ends the claim; False where it is no longer ours."""
    next_at = now + timedelta(seconds=discovery.refresh_seconds)
    mine = Discovery.objects.filter(pk=discovery.pk, due_at=discovery.due_at)
    return bool(mine.update(due_at=next_at, last_tried_at=now, **told))


def _change(discovery: Discovery, targets: list[Found], now: datetime) -> Changed:
    listed = {target.place for target in targets}
    num_moved = _move(discovery, targets, listed, now)
    known = {(source.url, source.selector): source for source in discovery.sources.all()}
    back = [source.pk for place, source in known.items() if place in listed and source.gone_at]
    gone = [source.pk for place, source in known.items() if place not in listed and not source.gone_at]
    Source.objects.filter(pk__in=back).update(gone_at=None, due_at=now)
    Source.objects.filter(pk__in=gone).update(gone_at=now)
    discovery.sources.update(
        kind=discovery.source_kind, mapping=discovery.mapping, interval_seconds=discovery.interval_seconds
    )
    come = _new(discovery, [target for target in targets if target.place not in known], now)
    return Changed(come=len(come), back=len(back), gone=len(gone), moved=num_moved)


def _move(discovery: Discovery, targets: list[Found], listed: Set[tuple[str, str]], now: datetime) -> int:
    """Engines of a Prometheus that has another address now, or is asked by other matchers, stay what they are on pages,
    by their names; where two have one name, neither does. What is read first there is a baseline. How many moved.
    """
    if discovery.kind != Discovery.Kind.PROMETHEUS:
        return 0
    sources = list(discovery.sources.all())
    places = {(source.url, source.selector) for source in sources}
    left = {source.name: source for source in sources if (source.url, source.selector) not in listed}
    new = [(source_name(discovery.name, target, frozenset()), target) for target in targets]
    names = Counter(name for name, _ in new)
    moved = [
        (left[name], target) for name, target in new if names[name] == 1 and name in left and target.place not in places
    ]
    for source, target in moved:
        Source.objects.filter(pk=source.pk).update(url=target.url, selector=target.selector, gone_at=None, due_at=now)
        start_over(source)
    return len(moved)


def _new(discovery: Discovery, targets: list[Found], now: datetime) -> list[Source]:
    taken = {*own_engines(), *Source.objects.values_list("name", flat=True)}
    sources = []
    for target in targets:
        name = source_name(discovery.name, target, taken)
        taken.add(name)
        sources.append(
            Source(
                name=name,
                url=target.url,
                selector=target.selector,
                kind=discovery.source_kind,
                mapping=discovery.mapping,
                interval_seconds=discovery.interval_seconds,
                discovery=discovery,
                due_at=now,
            )
        )
    return Source.objects.bulk_create(sources, batch_size=_BATCH)
