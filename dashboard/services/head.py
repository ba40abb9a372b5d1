"""Adds what was just read to the head: one row for each series and ten seconds. Knows nothing about counters, engines.

The caller holds the one lock under which these series are written (a source's row), inside one transaction.
"""

from collections.abc import Iterable, Mapping

from dashboard.models import Resolution, Series, TotalSeries
from dashboard.selectors.runs import head_of
from dashboard.services.amounts import Amount, Sums
from dashboard.services.amounts import sums_of as _sums_of
from dashboard.services.rows import execute_rows


def sums_of(amounts: Iterable[Amount], of: Mapping[int, int] | None = None) -> Sums:
    return _sums_of(amounts, _place, of)


def _place(at: int) -> list[tuple[int, ...]]:
    return [(at - at % Resolution.TEN_SECONDS,)]


def add(sums: Sums) -> None:
    """One upsert for all of them, in one order: two that meet wait and never block each other for good.

    Totals come last, since everybody writes them. Must run inside a transaction.
    """
    for of, buckets in ((Series, sums.buckets), (TotalSeries, sums.totals)):
        execute_rows(_ADD.replace("{table}", head_of(of)), [place + sum_ for place, sum_ in sorted(buckets.items())])


def add_amounts(amounts: Iterable[Amount]) -> None:
    """Must run inside a transaction."""
    add(sums_of(amounts))


# SQLite and PostgreSQL both speak this; reading first what is there took half the time of a recording.
_ADD = """
INSERT INTO {table} (series_id, start_at, value, num_samples) {rows}
ON CONFLICT (series_id, start_at) DO UPDATE SET
value = {table}.value + excluded.value, num_samples = {table}.num_samples + excluded.num_samples
"""
