"""Says in the log why copies failed, at most once a minute for each tier and direction. Knows nothing about copies."""

import logging
import time
from collections import Counter
from collections.abc import Callable

from tiers.names import Tier

log = logging.getLogger(__name__)

EVERY_SECONDS = 60.0
_WORDS = {"load": "read from", "store": "stored in"}


class Complaints:
    """What is not said is counted, and told with the next that is: a server that is away fails a thousand times."""

    def __init__(self, tier: Tier, clock: Callable[[], float] = time.monotonic) -> None:
        self._tier = tier
        self._clock = clock
        self._said_at: dict[str, float] = {}
        self._num_unsaid: Counter[str] = Counter()

    def add(self, operation: str, why: object) -> None:
        """`operation` is "load" or "store"; `why` a sentence or an exception that is one."""
        now = self._clock()
        if now - self._said_at.get(operation, -EVERY_SECONDS) < EVERY_SECONDS:
            self._num_unsaid[operation] += 1
            return
        self._said_at[operation] = now
        more = self._num_unsaid.pop(operation, 0)
        others = f" ({more:,} others since the last such line)" if more else ""
        log.warning("a block could not be %s the %s tier: %s%s", _WORDS[operation], self._tier, why, others)
