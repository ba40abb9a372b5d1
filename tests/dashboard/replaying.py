"""Traces with known requests, and replays of them, for tests. Writes into the folder of the settings' home."""

import json
import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from dashboard.models import Replay, Series
from dashboard.replay_sizes import parse_replay_size
from dashboard.services import replaying
from dashboard.services.replays import TierWish, Wanted, create
from dashboard.trace_folder import folder
from tests.stored import rows

BLOCK_TOKENS = 16
NUM_REQUESTS = 300
NOW = datetime(2026, 11, 30, 12, 0, 30, tzinfo=UTC)
SIZES = {"gpu": "12", "cpu": "15", "disk": "25"}

BucketRow = tuple[str, str, str, int, int, int, int]


def requests(num: int = NUM_REQUESTS, seed: int = 5) -> list[dict[str, Any]]:
    """Some conversations, over twenty minutes with a pause in the middle; the last block is not full."""
    rng = random.Random(seed)
    told, at = [], 0.0
    for number in range(num):
        at += rng.expovariate(1 / 3) + (300 if number == num // 2 else 0)
        user, turns = rng.randrange(12), rng.randrange(1, 7)
        ids = [f"s{user % 3}.{n}" for n in range(3)] + [f"u{user}.{n}" for n in range(turns)]
        tokens = [BLOCK_TOKENS] * (len(ids) - 1) + [rng.randrange(1, BLOCK_TOKENS + 1)]
        request = {"time": round(at, 3), "tenant": f"team-{user % 2}", "block_ids": ids, "tokens": tokens}
        told.append({**request, "prompt_tokens": sum(tokens) + 5, "output_tokens": 9})
    return told


def write_trace(name: str = "week.jsonl", told: list[dict[str, Any]] | None = None) -> Path:
    path = folder() / name
    path.write_text(
        "".join(json.dumps(each) + "\n" for each in requests() if told is None) if told is None else _lines(told)
    )
    return path


def _lines(told: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(each) + "\n" for each in told)


def wishes(sizes: dict[str, str] | None = None, **modes: Any) -> list[TierWish]:
    return [TierWish(tier, parse_replay_size(size), **modes) for tier, size in (sizes or SIZES).items()]


def make(name: str = "week", *, file_name: str = "week.jsonl", now: datetime = NOW, **told: Any) -> Replay:
    wanted = Wanted(name, file_name, told.pop("tiers", wishes()), **told)
    return create(wanted, author=None, now=now)


class Ticking:
    """A clock that goes on whenever it is looked at."""

    def __init__(self, now: datetime = NOW, step: float = 0.2) -> None:
        self.now = now
        self._step = timedelta(seconds=step)

    def __call__(self) -> datetime:
        self.now += self._step
        return self.now


def run(replay: Replay, clock: Ticking | None = None) -> Replay:
    """Until it has ended."""
    clock = clock or Ticking()
    while replaying.take_turn(replay.pk, clock=clock):
        pass
    replay.refresh_from_db()
    return replay


def forget() -> None:
    """As if the worker had died: what it had in memory is gone."""
    for held in replaying._held.values():
        held.close()
    replaying._held.clear()


def buckets(replay: Replay) -> set[BucketRow]:
    """Every bucket with all that is in it."""
    return {row[3:] for row in rows(source_id=replay.source_id)}


def sums(replay: Replay, resolution: int = 86_400) -> Counter[tuple[str, str]]:
    """Σ value by metric and tier."""
    found: Counter[tuple[str, str]] = Counter()
    for metric, tier, _, of, _, value, _ in buckets(replay):
        if of == resolution:
            found[metric, tier] += value
    return +found


def series_named(engine: str) -> int:
    return Series.objects.filter(engine=engine).count()
