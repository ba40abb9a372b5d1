"""Lets the recorder read a fleet, on its beat and as fast as it can. Knows no bar.

Everything is what a worker runs, but for Celery, which brings eleven messages for 500 sources.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing import get_context
from typing import Any

from django.db import connections
from django.utils import timezone

from bench._origins import STEP, Origins
from bench._postgres import Postgres
from dashboard import valkey
from dashboard.batches import evenly
from dashboard.garbage import collect_rarely
from dashboard.models import Resolution, Series, Source
from dashboard.selectors.runs import runs
from dashboard.services.recording import MAX_TOGETHER, Look, book_looks, claim_many, due_source_ids, record_many
from dashboard.sources.detection import read
from dashboard.sources.reading import readings, total_samples

NUM_SOURCES = 500
ROUNDS = 4  # of ten seconds
_PROCESSES = os.cpu_count() or 1
_FAST_ROUNDS = 6
_START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class OnItsBeat:
    """Seconds of a processor for each second of the clock; `num_missed` readings that should have been there."""

    our_cores: float
    postgres_cores: float
    num_missed: int


def add_sources(url: str) -> list[Source]:
    return Source.objects.bulk_create(
        Source(name=f"e{number}", kind="tierscope", url=f"{url}/{number}/metrics", interval_seconds=STEP, due_at=_START)
        for number in range(NUM_SOURCES)
    )


@contextmanager
def engines_served() -> Iterator[str]:
    """The address before an engine's number."""
    argv = [sys.executable, "-m", "bench._text_server"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.terminate()


def on_its_beat(postgres: Postgres) -> OnItsBeat:
    """Reads every source over HTTP when it is due, for some rounds after the first."""
    _read_due_until(_next_beat())  # makes the series
    num_before = _num_read()
    began, cpu, postgres_cpu = time.time(), time.process_time(), postgres.cpu_seconds()
    _read_due_until(began + ROUNDS * STEP)
    seconds = time.time() - began
    return OnItsBeat(
        (time.process_time() - cpu) / seconds,
        (postgres.cpu_seconds() - postgres_cpu) / seconds,
        ROUNDS * NUM_SOURCES - (_num_read() - num_before),
    )


def _num_read() -> int:
    scrapes = Series.objects.filter(metric=Series.Metric.SCRAPES).values_list("pk", flat=True)
    return sum(sum(run.values) for run in runs(list(scrapes), Resolution.DAY))


def _next_beat() -> float:
    """A moment just before sources are due again, far enough away to read them all once before."""
    return (time.time() // STEP + 2) * STEP - 0.5


def _read_due_until(end: float) -> None:
    while time.time() < end:
        for together in evenly(due_source_ids(timezone.now()), MAX_TOGETHER):
            record_many(together, clock=timezone.now, connection=valkey.client())
        time.sleep(max(0.0, min(end, time.time() // 1 + 1) - time.time()))


@dataclass(frozen=True)
class Fast:
    """Samples a second of the clock; and what a thousand took of processors, in milliseconds."""

    rate: float
    our_cpu_ms: float
    postgres_cpu_ms: float


def as_fast_as_it_can(postgres: Postgres, sources: Sequence[Source], *, is_read: bool) -> Fast:
    """Claimed and booked, and read from their texts before that where `is_read`.

    By as many processes as there are processors, each with a share of the batches, as workers have it.
    """
    now = time.time() // STEP * STEP
    moments = [datetime.fromtimestamp(now + STEP * number, UTC) for number in range(_FAST_ROUNDS)]
    _rounds[:] = [
        list(evenly(list(_looks(sources, number, at, is_read=is_read).items()), MAX_TOGETHER))
        for number, at in enumerate(moments)
    ]
    connections["default"].close()
    with ProcessPoolExecutor(_PROCESSES, get_context("fork"), collect_rarely) as pool:
        _round(pool, 0, moments[0])  # makes the series
        began, postgres_cpu = time.perf_counter(), postgres.cpu_seconds()
        told = [_round(pool, number, at) for number, at in enumerate(moments) if number]
        seconds = time.perf_counter() - began
        num_samples, cpu = (sum(each) for each in zip(*told, strict=True))
        spent = cpu, postgres.cpu_seconds() - postgres_cpu
    return Fast(num_samples / seconds, *(1e6 * each / num_samples for each in spent))


# By round and batch, what each source tells: the processes have it from the one that they come from.
_rounds: list[list[list[tuple[int, Any]]]] = []


def _round(pool: ProcessPoolExecutor, number: int, at: datetime) -> tuple[int, float]:
    """Samples, and seconds of our processors that they took."""
    Source.objects.update(due_at=at)
    connections["default"].close()
    told = list(pool.map(_book, [(number, place) for place in range(len(_rounds[number]))]))
    return sum(num for num, _ in told), sum(cpu for _, cpu in told)


def _book(place: tuple[int, int]) -> tuple[int, float]:
    began = time.process_time()
    number, batch = place
    return _booked(_rounds[number][batch]), time.process_time() - began


def _looks(sources: Sequence[Source], number: int, at: datetime, *, is_read: bool) -> dict[int, Any]:
    """By source: its text, or what was read of it already."""
    texts = {source.pk: Origins(place).text(number, "0") for place, source in enumerate(sources)}
    return {pk: (at, text if is_read else _adapted(text)) for pk, text in texts.items()}


def _adapted(text: str) -> Any:
    return read(text, "tierscope")


def _booked(together: Sequence[tuple[int, Any]]) -> int:
    """How many samples were."""
    told = dict(together)
    at = together[0][1][0]
    seen = []
    for source in claim_many(told, at):
        what = told[source.pk][1]
        adapted = _adapted(what) if isinstance(what, str) else what
        seen.append((source, Look(at, 0.0, tuple(readings(adapted, at=at, prefix=source.name)))))
    booked = set(book_looks(seen))
    return sum(total_samples(look.found) for source, look in seen if source.pk in booked)
