"""Reads of many sources what can be read: one damaged row does not hide what the others say. Knows no metric."""

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from dashboard.chunks import ChunkError
from dashboard.models import Source

_log = logging.getLogger(__name__)

Answer = TypeVar("Answer")


def of_readable(sources: Sequence[int], read: Callable[[Sequence[int]], Answer], unread: set[int]) -> Iterator[Answer]:
    """What `read` says of these ids, in one piece, or in several around those that are, or get, into `unread`.

    Halves are tried until what is left is one source: of five hundred with one damaged that takes 18 reads.
    """
    sources = [source for source in sources if source not in unread]
    if not sources:
        return
    try:
        yield read(sources)
    except ChunkError as error:
        if len(sources) > 1:
            half = len(sources) // 2
            yield from of_readable(sources[:half], read, unread)
            yield from of_readable(sources[half:], read, unread)
            return
        unread.update(sources)
        name = Source.objects.filter(pk__in=sources).values_list("name", flat=True).first()
        _log.error("%s is left out of alerts. %s", name, error)
