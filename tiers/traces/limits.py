"""How much of a trace is read before it is refused, and the meter that counts. Knows nothing about what is read."""

from collections.abc import Callable
from dataclasses import dataclass

from tiers.traces.request import TraceError


@dataclass(frozen=True)
class TraceLimits:
    """`max_bytes` are unpacked ones, of all files together. A prompt of a million tokens in blocks of 16 has a line of
    about 8 MiB. `max_sorted_bytes` may lie in a temporary file where requests have to be sorted first.
    """

    max_line_bytes: int = 8 << 20
    max_bytes: int = 64 << 30
    max_sorted_bytes: int = 8 << 30
    max_files: int = 200
    max_requests: int = 50_000_000
    max_accesses: int = 200_000_000


class Meter:
    """What was read so far, and how far that is: by packed bytes, or by rows where they had to be sorted first.

    `on_read` is called every hundred kilobytes; what it raises ends the reading.
    """

    def __init__(
        self, limits: TraceLimits, num_packed_bytes: int, on_read: Callable[[], object] = lambda: None
    ) -> None:
        self.limits = limits
        self.on_read = on_read
        self._num_packed, self._num_packed_read = num_packed_bytes, 0
        self._num_rows = self._num_rows_read = 0
        self._num_unpacked = self._num_requests = self._num_accesses = self._num_files = 0

    def file(self, name: str) -> None:
        self._num_files += 1
        if self._num_files > self.limits.max_files:
            raise TraceError(f"{name}: more than {self.limits.max_files:,} files; take fewer at a time.")

    @property
    def share_read(self) -> float:
        done, whole = (
            (self._num_rows_read, self._num_rows) if self._num_rows else (self._num_packed_read, self._num_packed)
        )
        return min(done / max(whole, 1), 1.0)

    def packed(self, num_bytes: int) -> None:
        self._num_packed_read += num_bytes

    def is_sorted(self, num_rows: int) -> None:
        self._num_rows = num_rows

    def row(self) -> None:
        self._num_rows_read += 1

    def unpacked(self, name: str, num_bytes: int) -> None:
        self._num_unpacked += num_bytes
        if self._num_unpacked > self.limits.max_bytes:
            raise TraceError(f"{name}: more than {self.limits.max_bytes:,} unpacked bytes; cut the trace.")
        self.on_read()

    def request(self, where: str, num_accesses: int) -> None:
        self._num_requests += 1
        self._num_accesses += num_accesses
        if self._num_requests > self.limits.max_requests:
            raise TraceError(f"{where}: more than {self.limits.max_requests:,} requests; cut the trace.")
        if self._num_accesses > self.limits.max_accesses:
            raise TraceError(f"{where}: more than {self.limits.max_accesses:,} block accesses; cut the trace.")
