"""Sources that read one engine: pages would add up twice what it told once. Reads only."""

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from django.db.models import QuerySet

from dashboard.models import Source

_INSTANCE = re.compile(r'(?:^|[{,])\s*instance\s*=\s*"([^"\\]+)"')


def read_twice(source: Source) -> str:
    """A sentence where another source reads the same as this one; "" where none does, or as another kind of engine."""
    if not source.url:
        return ""
    read = Source.objects.exclude(pk=source.pk).filter(is_enabled=True, gone_at=None, removed_at=None).order_by("name")
    if name := _first(source, read.filter(url=source.url, selector=source.selector, mapping=source.mapping)):
        return (
            f"“{name}” reads the same address as this kind of engine: all that it tells is counted twice. Remove one."
        )
    if name := _first(source, _other_ways(source, read)):
        same = f"“{name}” reads {_place(source)}, too, as this kind of engine"
        return f"{same}: if it is the same one, all that it tells is counted twice. Remove one."
    return ""


def _first(source: Source, others: Iterable[Source]) -> str:
    return next((other.name for other in others if other.kind == source.kind or other.read_as == source.read_as), "")


def _other_ways(source: Source, read: QuerySet[Source]) -> Iterable[Source]:
    """Those that read its host and port from a Prometheus where it is asked itself, and the other way round."""
    if place := _place(source):
        others = (
            read.filter(selector="", url__contains=place) if source.selector else read.filter(selector__contains=place)
        )
        return [other for other in others if _place(other) == place]
    return []


def _place(source: Source) -> str:
    """A Prometheus calls an engine by its host and port, unless it was told otherwise."""
    if not source.selector:
        return urlsplit(source.url).netloc
    found = _INSTANCE.search(source.selector)
    return found[1] if found else ""
