"""Times two things in turns, so that whatever else the machine does hits both. Knows nothing about what they are."""

import time
from collections.abc import Callable
from statistics import median


def alternate(ours: Callable[[], object], reference: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Median seconds of each over `rounds`, after one unmeasured round."""
    seconds: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds + 1):
        for taken, run in zip(seconds, (ours, reference), strict=True):
            started = time.perf_counter()
            run()
            if number:
                taken.append(time.perf_counter() - started)
    return median(seconds[0]), median(seconds[1])
