"""What lies in a queue, at once; and a sign of life where nothing does. Knows nothing about what it is."""

import queue
from collections.abc import Iterator
from typing import TypeVar

T = TypeVar("T")


def waited_for(events: "queue.SimpleQueue[T]", seconds: float) -> Iterator[list[T]]:
    """An empty list where nothing came for so long."""
    while True:
        try:
            batch = [events.get(timeout=seconds)]
            while not events.empty():
                batch.append(events.get())
        except queue.Empty:
            batch = []
        yield batch
