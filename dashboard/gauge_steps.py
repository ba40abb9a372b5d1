"""What a gauge adds to the total of all engines': its mean over each step that a chart has. Pure; knows no database.

Engines' means add up, but a mean over six hours does not follow from those over one: an engine that was seen in two of
them counts with what it held then, not with a third of it. So totals of gauges are kept in steps, not in resolutions,
in chunks that cover what those of the resolution do: both expire together.

None in weeks, whose edges are not those of chunks.
"""

from collections.abc import Iterable, Iterator, Mapping

from dashboard.chunks import NUM_BUCKETS, Buckets

_DAY = 86_400
STEPS: Mapping[int, tuple[int, ...]] = {
    10: (10, 20, 30),
    60: (60, 120, 300, 600, 900, 1_800),
    3_600: (3_600, 7_200, 10_800, 21_600, 43_200),
    _DAY: (_DAY, 2 * _DAY, 30 * _DAY, 60 * _DAY),
}
RESOLUTION_OF = {step: resolution for resolution, steps in STEPS.items() for step in steps}

Change = tuple[int, int, int, int]  # step, its index in the chunk of that step, more mean, more steps with readings


def mean(value: int, num_samples: int) -> int:
    """To the whole, halves to the even one, in integers: the database does the same. Nothing without readings."""
    if not num_samples:
        return 0
    whole, rest = divmod(value, num_samples)
    return whole + (2 * rest > num_samples or (2 * rest == num_samples and whole % 2))


def changes(resolution: int, before: Buckets, after: Buckets, buckets: Iterable[int]) -> Iterator[Change]:
    """Of a series' chunk, of which these buckets changed."""
    touched = set(buckets)
    for step in STEPS.get(resolution, ()):
        num_together = step // resolution
        for slot in {index // num_together for index in touched}:
            first, end = slot * num_together, (slot + 1) * num_together
            old, new = _step(before, first, end), _step(after, first, end)
            if old != new:
                yield step, slot, mean(*new) - mean(*old), bool(new[1]) - bool(old[1])


def everything(chunk: Buckets) -> Iterable[int]:
    """The buckets with readings."""
    return (index for index in range(NUM_BUCKETS) if chunk.num_samples[index])


def _step(chunk: Buckets, first: int, end: int) -> tuple[int, int]:
    if end - first == 1:
        return chunk.values[first], chunk.num_samples[first]
    return sum(chunk.values[first:end]), sum(chunk.num_samples[first:end])
