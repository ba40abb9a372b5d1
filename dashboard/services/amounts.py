"""What is to be added to series, and with it to the totals that they belong to. Pure but for one look at these.

Where it is added is services/head.py (what was just read) and services/chunks.py (what is older).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dashboard.services.totals import totals_of


class Amount(NamedTuple):
    """`value` more of a series, observed at Unix second `at`; `num_samples` readings went into it."""

    series_id: int
    at: int
    value: int
    num_samples: int = 1


Place = tuple[int, ...]  # the series' id first
Sum = tuple[int, int]  # Σ value, Σ num_samples
ByPlace = Mapping[Place, Sum]
NOTHING: Sum = (0, 0)

Key = tuple[int, int, int]  # of a chunk: series_id, resolution, start
Changes = Mapping[Key, Sequence[tuple[int, int, int]]]  # of buckets by index: more value, more samples


@dataclass(frozen=True)
class Sums:
    """What is to be added to series, and to totals."""

    buckets: ByPlace
    totals: ByPlace


def sums_of(
    amounts: Iterable[Amount], places: Callable[[int], Iterable[tuple[int, ...]]], of: Mapping[int, int] | None = None
) -> Sums:
    """`places`: Unix second → where it belongs in a series. Needs no lock: make them before one is taken.

    `of`: series → its total, where that is known already.
    """
    sums: dict[Place, Sum] = {}
    known: dict[int, list[tuple[int, ...]]] = {}  # most amounts of a group are of the same few seconds
    for series_id, at, more, more_samples in amounts:
        if (rest := known.get(at)) is None:
            rest = known[at] = list(places(at))
        for each in rest:
            place = (series_id, *each)
            value, num_samples = sums.get(place, NOTHING)
            sums[place] = (value + more, num_samples + more_samples)
    return with_totals(sums, of)


def with_totals(buckets: ByPlace, of: Mapping[int, int] | None = None) -> Sums:
    of = totals_of({place[0] for place in buckets}) if of is None else of
    totals: dict[Place, Sum] = {}
    for (series_id, *rest), (more, more_samples) in buckets.items():
        if (total_id := of.get(series_id)) is not None:
            place = (total_id, *rest)
            value, num_samples = totals.get(place, NOTHING)
            totals[place] = (value + more, num_samples + more_samples)
    return Sums(buckets, totals)
