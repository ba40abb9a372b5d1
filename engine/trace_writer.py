"""Writes what is recorded as lines of the plain trace form (docs/traces.md), on a thread of its own.

The stepping thread only appends to a list. Block keys leave the process as keyed BLAKE2b: without the home's secret
nobody can find out by trying which short prompt they stand for. A disk that fails costs records, and nothing else.
"""

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from hashlib import blake2b

from engine.recording import LiveRecording, NoRecording, RecordCounts, Recording, TraceRecord
from engine.trace_folder import TraceFolder
from tiers import BlockKey

log = logging.getLogger(__name__)

EVERY_SECONDS = 5.0
# About 30 MB of keys: eight million tokens in blocks of 16 within those seconds.
MAX_PENDING_KEYS = 500_000
MAX_PENDING_RECORDS = 50_000
_MEMBER_BYTES = 1 << 18
_NAME_BYTES = 12


class NoTraceWriter:
    """Switched off."""

    def recording(self) -> Recording:
        return NoRecording()

    def start(self) -> None:
        pass

    def stop(self) -> None:
        pass


class TraceWriter:
    """`secret` stays with the home; it is the same for all engines that are to be read together."""

    def __init__(
        self,
        folder: TraceFolder,
        *,
        secret: bytes,
        model_name: str,
        block_size: int,
        every_seconds: float = EVERY_SECONDS,
    ) -> None:
        self._folder = folder
        self._secret = blake2b(secret).digest()
        self._model_name = model_name
        self._block_size = block_size
        self._every_seconds = every_seconds
        self._lock = threading.Lock()
        self._pending: list[TraceRecord] = []
        self._num_pending_keys = self._num_recorded = self._num_dropped = 0
        self._has_warned = False
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="trace-writer", daemon=True)

    def recording(self, wall_clock: Callable[[], float] = time.time) -> Recording:
        """What an engine tells."""
        return LiveRecording(self, wall_clock)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Writes what is there; without a start does nothing."""
        if self._thread.is_alive():
            self._stopped.set()
            self._thread.join()
            self.write()

    def put(self, record: TraceRecord) -> None:
        with self._lock:
            num_keys = self._num_pending_keys + record.num_keys
            if num_keys > MAX_PENDING_KEYS or len(self._pending) >= MAX_PENDING_RECORDS:
                self._num_dropped += 1
                return
            self._num_pending_keys = num_keys
            self._pending.append(record)

    def counts(self) -> RecordCounts:
        with self._lock:
            return RecordCounts(True, self._num_recorded, self._num_dropped)

    def write(self) -> None:
        """What is pending now. Called by one thread at a time."""
        with self._lock:
            pending, self._pending, self._num_pending_keys = self._pending, [], 0
        for lines in _parts(self._line(record) for record in pending):
            self._append(lines)

    def _append(self, lines: list[bytes]) -> None:
        try:
            self._folder.append(b"".join(lines))
        except Exception as error:
            self._warn(error)
            with self._lock:
                self._num_dropped += len(lines)
            return
        self._has_warned = False
        with self._lock:
            self._num_recorded += len(lines)

    def _warn(self, error: Exception) -> None:
        """Once, until it goes well again: this is met every few seconds."""
        if not self._has_warned:
            log.warning("traffic is not recorded: %s: %s", type(error).__name__, error)
        self._has_warned = True

    def _line(self, record: TraceRecord) -> bytes:
        told = {
            "time": round(record.at, 3),
            "tenant": record.tenant,
            "model": self._model_name,
            "block_ids": [self._name(key) for key in record.asked],
            "tokens": self._block_size,
            "prompt_tokens": record.num_prompt_tokens,
            "output_tokens": record.num_output_tokens,
            "output_block_ids": [self._name(key) for key in record.filled],
        }
        return json.dumps(told, separators=(",", ":")).encode() + b"\n"

    def _name(self, key: BlockKey) -> str:
        return blake2b(key, key=self._secret, digest_size=_NAME_BYTES).hexdigest()

    def _run(self) -> None:
        while not self._stopped.wait(self._every_seconds):
            self.write()


def _parts(lines: Iterator[bytes]) -> Iterator[list[bytes]]:
    """As many at a time as are worth a gzip member."""
    part: list[bytes] = []
    num_bytes = 0
    for line in lines:
        part.append(line)
        num_bytes += len(line)
        if num_bytes >= _MEMBER_BYTES:
            yield part
            part, num_bytes = [], 0
    if part:
        yield part
