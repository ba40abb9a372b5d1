"""How far back “now” reaches for sources that are read rarely: what one told holds until its next readings are missing.

An increase lies in the middle of the interval that it was seen over, so that at a source's next reading the newest one
is one and a half intervals old. Knows no metric.
"""

from collections import defaultdict
from collections.abc import Mapping

from dashboard.models import Source
from dashboard.selectors.source_states import INTERVALS_UNTIL_STALE


def sources_by_lookback(seconds: int) -> Mapping[int, list[int]]:
    """Seconds → ids of the sources of which as much is looked at: `seconds`, or more where one is read more rarely."""
    found: dict[int, list[int]] = defaultdict(list)
    for pk, interval_seconds in Source.objects.values_list("pk", "interval_seconds"):
        found[max(seconds, INTERVALS_UNTIL_STALE * interval_seconds)].append(pk)
    return found
