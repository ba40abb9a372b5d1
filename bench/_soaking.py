"""What both soaks say and how they are run for longer. Knows nothing about what is soaked."""

import sys
from collections.abc import Callable, Iterable

from bench.result import Result, compare

DEFAULT_SECONDS = 60.0
# An allocator keeps what it once needed, and caches fill: the first fifth is theirs.
EARLY_SHARE = 0.2
GROWTH_BAR = 1.10


def exactly(name: str, ours: int, reference: int) -> Result:
    ratio = ours / reference if reference else None
    return Result(name, ours, reference, "what the clients saw", "count", ratio, "= reference", ours == reference)


def memory_growth(name: str, late_bytes: int, early_bytes: int) -> Result:
    return compare(
        name,
        ours=late_bytes / 2**20,
        reference=early_bytes / 2**20,
        reference_name="RSS after a fifth of the time",
        unit="MiB",
        bar=GROWTH_BAR,
        better="lower",
    )


def command_line(soak: Callable[[float], Iterable[Result]]) -> None:
    """As long as the first argument says, one JSON object a line; exit status 1 if a bar was missed."""
    results = list(soak(float(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_SECONDS))
    print(*(result.as_json() for result in results), sep="\n")
    sys.exit(any(result.ok is False for result in results))
