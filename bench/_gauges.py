"""Fills a store with what a fleet's tiers held and could hold: six gauges an engine, for a month. Measures nothing.

Hours and days are packed; of the last ten minutes every reading is still in the head, as at the worst moment, just
before they are packed as well.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from bench._origins import STEP
from bench._packed import Row, store
from dashboard.models import Resolution, Series, Source
from dashboard.services.amounts import Amount
from dashboard.services.chunks import HEAD_SECONDS
from dashboard.services.head import add_amounts
from dashboard.services.increases import create_series

NUM_GAUGES = 6
_FACTS = [(metric, tier) for tier in ("gpu", "cpu", "disk") for metric in ("resident_tokens", "capacity_tokens")]
_SEED = 6


def fill(sources: Sequence[Source], start: int, now: int) -> int:
    """From `start` to a moment; how many rows there are packed."""
    create_series((source.pk, f"{source.name}/0", ("m", *fact, "")) for source in sources for fact in _FACTS)
    gauges = Series.objects.filter(source__in=sources, metric__in=Series.GAUGES).order_by("pk")
    told = dict(gauges.values_list("pk", "metric"))
    settled = now - HEAD_SECONDS
    num_rows = store(row for pk, metric in told.items() for row in _rows(pk, metric, start, settled))
    seconds = range(settled // STEP * STEP, now, STEP)
    for pk in told:
        add_amounts(Amount(pk, at, 100_000 + at % 977) for at in seconds)
    return num_rows


def _rows(pk: int, metric: str, start: int, end: int) -> Iterator[Row]:
    """The mean of each hour goes its own way; a capacity stays."""
    rng = np.random.default_rng(_SEED + pk)
    hours = np.arange(start, end, Resolution.HOUR)
    num_samples = Resolution.HOUR // STEP
    capacity = int(rng.integers(100_000, 500_000))
    share = np.clip(0.7 + np.cumsum(rng.normal(0, 0.01, len(hours))), 0, 1) if metric == "resident_tokens" else 1.0
    sums = (share * np.full(len(hours), capacity)).astype(np.int64) * num_samples
    for resolution in (Resolution.HOUR, Resolution.DAY):
        slots = hours // resolution
        edges = np.flatnonzero(np.diff(slots, prepend=-1))
        counts = np.diff(edges, append=len(hours)) * num_samples
        of_step = zip((slots[edges] * resolution).tolist(), np.add.reduceat(sums, edges).tolist(), strict=True)
        for (at, value), num in zip(of_step, counts.tolist(), strict=True):
            yield pk, int(resolution), at, value, num
