"""Reads what the embedded engines published in Valkey: the living ones, and the last word of those that went away.

Knows the shape of what an engine publishes (see dashboard/valkey.py for the keys); books nothing.
"""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import redis

from dashboard import valkey

# Keys live for an hour (valkey.FINAL_TTL_SECONDS). What is older all the same, say after a clock jumped, belongs to a
# run that may be forgotten already (services/retention.py): it would be counted a second time.
MAX_AGE = timedelta(days=1)


@dataclass(frozen=True)
class Published:
    """One engine run's newest exposition text and when it was taken."""

    engine: str
    boot_id: str
    at: datetime
    exposition: str


def published(connection: redis.Redis, now: datetime) -> tuple[list[Published], list[str]]:
    """The newest of every run, oldest first, and a sentence for each entry that cannot be used."""
    newest: dict[tuple[str, str], Published] = {}
    problems: list[str] = []
    for key, text in _texts(connection):
        try:
            entry = _entry(_engine_of(key), text, now)
        except (ValueError, KeyError, TypeError) as error:
            problems.append(f"{key} holds no engine snapshot ({type(error).__name__}: {error}).")
            continue
        if (
            entry.exposition
            and entry.at > now - MAX_AGE
            and _is_newer(entry, newest.get((entry.engine, entry.boot_id)))
        ):
            newest[entry.engine, entry.boot_id] = entry
    return sorted(newest.values(), key=lambda entry: (entry.at, entry.engine)), problems


def _texts(connection: redis.Redis) -> Iterable[tuple[str, str]]:
    keys = [*valkey.engine_keys(connection), *valkey.final_keys(connection)]
    values: Any = connection.mget(keys) if keys else []
    return ((key, value) for key, value in zip(keys, values, strict=True) if value)


def _engine_of(key: str) -> str:
    """ "ts:engine:local" and "ts:final:local:<boot>" → "local"."""
    return key.split(":")[2]


def _entry(engine: str, text: str, now: datetime) -> Published:
    told = json.loads(text)
    return Published(
        engine=engine,
        boot_id=str(told["boot_id"])[:64],
        at=min(_moment(told["at"]), now),  # a clock that runs ahead must not put its readings into the future
        exposition=str(told.get("exposition") or ""),
    )


def _moment(value: Any) -> datetime:
    if isinstance(value, str):
        moment = datetime.fromisoformat(value)
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    if not math.isfinite(value):
        raise ValueError(f"at is {value}")
    return datetime.fromtimestamp(value, tz=UTC)


def _is_newer(entry: Published, other: Published | None) -> bool:
    return other is None or entry.at > other.at
