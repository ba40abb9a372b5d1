"""Times things in turns, so that whatever else the machine does hits all of them. Knows nothing about what they are."""

import time
from collections.abc import Callable, Mapping
from statistics import median


def alternate(ours: Callable[[], object], reference: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Median seconds of each over `rounds`, after one unmeasured round."""
    taken = in_turns({"ours": ours, "reference": reference}, rounds)
    return median(taken["ours"]), median(taken["reference"])


def in_turns(
    things: Mapping[str, Callable[[], object]], rounds: int, before: Callable[[], object] = lambda: None
) -> dict[str, list[float]]:
    """Seconds of each in each of `rounds`, after one unmeasured round. `before` prepares each run and is not timed."""
    seconds: dict[str, list[float]] = {name: [] for name in things}
    for number in range(rounds + 1):
        for name, run in things.items():
            before()
            started = time.perf_counter()
            run()
            if number:
                seconds[name].append(time.perf_counter() - started)
    return seconds
