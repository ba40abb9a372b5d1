"""What admins and clients ask of a running engine: sizes, modes, clears, aborts. Two threads in the engine worker.

The database says what each tier should be; the bell in Valkey only says "look now". Knows nothing about texts.
"""

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import redis
from django.db import close_old_connections
from django.utils import timezone

from dashboard import valkey
from dashboard.models import TierSetting
from dashboard.services.tiers import Wish, record_applied, record_cleared
from dashboard.tier_modes import Modes

logger = logging.getLogger(__name__)

# Also without a bell (Valkey was away), and again for what was refused (the request in the way may have ended).
_RECONCILE_SECONDS = 5.0
_BELL_SECONDS = 1


class Controllable(Protocol):
    """What this module needs of the engine; sizes in bytes, tiers by name."""

    name: str

    def capacities(self) -> Mapping[str, int]: ...
    def resize(self, tier: str, num_bytes: int) -> str:
        """Empty, or the sentence that says why the old size stays."""
        ...

    def modes(self, tier: str) -> Modes:
        """What it runs with (tier_modes.py)."""
        ...

    def configure(self, tier: str, modes: Modes) -> str:
        """As resize does."""
        ...

    def clear(self, tier: str) -> int: ...
    def abort(self, run_id: str) -> None: ...
    def block_bytes(self, tier: str) -> int: ...


class Controller:
    def __init__(self, host: Controllable, connect: Callable[[], redis.Redis]) -> None:
        self._host = host
        self._connect = connect
        self._stopped = threading.Event()
        self._threads = [
            threading.Thread(target=self._guarded, args=(self._control,), name="control", daemon=True),
            threading.Thread(target=self._guarded, args=(self._listen_for_aborts,), name="aborts", daemon=True),
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join(2 * _BELL_SECONDS)

    def reconcile(self) -> None:
        """Makes the engine what the rows say, shrinking before growing, and writes down what became of it."""
        capacities = self._host.capacities()
        rows = [row for row in TierSetting.objects.filter(engine=self._host.name) if row.cache_tier in capacities]
        for row in sorted(rows, key=lambda row: row.desired_bytes - capacities[row.cache_tier]):
            self._apply(row, capacities[row.cache_tier])

    def _apply(self, row: TierSetting, capacity_bytes: int) -> None:
        wish, reasons = Wish.of(row), []
        if not self._is_size(row.cache_tier, row.desired_bytes, capacity_bytes):
            reasons.append(self._host.resize(row.cache_tier, row.desired_bytes))
            capacity_bytes = self._host.capacities()[row.cache_tier]
        if self._host.modes(row.cache_tier) != wish.modes:
            reasons.append(self._host.configure(row.cache_tier, wish.modes))
        reason = " ".join(filter(None, reasons))
        if (row.applied_bytes, row.reason) != (capacity_bytes, reason):
            record_applied(row.engine, row.cache_tier, capacity_bytes, reason, timezone.now())

    def _is_size(self, tier: str, desired_bytes: int, capacity_bytes: int) -> bool:
        """A tier holds whole blocks."""
        block_bytes = self._host.block_bytes(tier)
        return desired_bytes // block_bytes == capacity_bytes // block_bytes

    def _control(self) -> None:
        """Until stopped: reconcile at start, at every bell and every 5 s."""
        reconcile_at = time.monotonic()
        while not self._stopped.is_set():
            if time.monotonic() >= reconcile_at:
                close_old_connections()
                self.reconcile()
                reconcile_at = time.monotonic() + _RECONCILE_SECONDS
            answer: Any = self._connect().blpop([valkey.control_key(self._host.name)], timeout=_BELL_SECONDS)
            if answer:
                self.obey(json.loads(answer[1]))
                reconcile_at = time.monotonic()

    def obey(self, message: Mapping[str, Any]) -> None:
        """`reconcile` needs nothing done here: it follows every bell."""
        if message["op"] == "clear":
            close_old_connections()
            try:
                num_dropped = self._host.clear(message["tier"])
                outcome = f"{num_dropped:,} {'block' if num_dropped == 1 else 'blocks'} dropped"
            except Exception as error:
                logger.exception("could not clear %s", message["tier"])
                outcome = f"not cleared: {type(error).__name__}"
            record_cleared(message["change_id"], outcome)

    def _listen_for_aborts(self) -> None:
        with self._connect().pubsub(ignore_subscribe_messages=True) as channel:  # type: ignore[no-untyped-call] # it has no types
            channel.subscribe(valkey.ABORT_CHANNEL)
            while not self._stopped.is_set():
                message = channel.get_message(timeout=_BELL_SECONDS)
                if message is not None:
                    self._host.abort(message["data"])

    def _guarded(self, work: Callable[[], None]) -> None:
        """Whatever fails (Valkey away, database locked) is logged and tried again a second later."""
        while not self._stopped.is_set():
            try:
                work()
            except redis.RedisError as error:
                logger.warning("%s waits for Valkey: %s", threading.current_thread().name, error)
                self._stopped.wait(1)
            except Exception:
                logger.exception("%s failed and starts again", threading.current_thread().name)
                self._stopped.wait(1)
