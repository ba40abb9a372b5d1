"""Collects what changes of gauges' chunks come to in their totals. Knows no database."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from dashboard.chunks import Buckets
from dashboard.gauge_steps import changes
from dashboard.services.amounts import Changes, Key


class GaugeChanges:
    """`totals`: series → its total; what is noted of any other series comes to nothing."""

    def __init__(self, totals: Mapping[int, int]) -> None:
        self._totals = totals
        self._found: dict[Key, dict[int, list[int]]] = defaultdict(lambda: defaultdict(lambda: [0, 0]))

    def note(self, key: Key, before: Buckets, after: Buckets, buckets: Iterable[int]) -> None:
        """A series' chunk was, or will be, changed in these buckets."""
        series_id, resolution, chunk_start = key
        if (total_id := self._totals.get(series_id)) is None:
            return
        for step, index, value, more in changes(resolution, before, after, buckets):
            sums = self._found[total_id, step, chunk_start][index]
            sums[0] += value
            sums[1] += more

    def of_totals(self) -> Changes:
        return {
            key: [(index, value, more) for index, (value, more) in sorted(of_key.items()) if value or more]
            for key, of_key in self._found.items()
        }
