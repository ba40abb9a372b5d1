"""Reads an engine that somebody asked to be watched, unless it is one of our own: those are recorded already.

Our /metrics names the run of every engine, and so do we in Valkey: equal runs are the same engine, whatever the address
is, a proxy or a federation included. Knows no database.
"""

from collections.abc import Callable
from datetime import datetime

import redis

from dashboard import valkey
from dashboard.sources.adapter import Adapted, adapt
from dashboard.sources.detection import adapter_for, names_read_of
from dashboard.sources.exposition import Exposition, ExpositionError, parse
from dashboard.sources.prometheus_now import exposition_now
from dashboard.sources.target import Target

INFO = "tierscope_engine_info"  # labels engine and boot_id

Fetch = Callable[[Target], str]


class OwnEngineError(ExpositionError):
    """The text is our own /metrics, or holds a part of it."""


def exposition_of(target: Target, fetch_text: Fetch, now: datetime) -> Exposition:
    """What is told there: its own text, or what a Prometheus has of it. Raises ScrapeError or ExpositionError."""
    names = names_read_of(target.typed) | {INFO}
    return exposition_now(target, names, now) if target.selector else parse(fetch_text(target), names)


def read_watched(target: Target, connection: redis.Redis, fetch_text: Fetch, now: datetime) -> Adapted:
    """What is told there. Raises ScrapeError, ExpositionError, or its OwnEngineError."""
    exposition = exposition_of(target, fetch_text, now)
    refuse_own(exposition, connection)
    return adapt(exposition, adapter_for(exposition, target.kind, target.typed))


def refuse_own(exposition: Exposition, connection: redis.Redis) -> None:
    """Raises OwnEngineError with one sentence; redis.RedisError where it cannot be known."""
    told = {
        (sample.labels.get("boot_id"), sample.labels.get("engine"))
        for sample in exposition.samples
        if sample.name == INFO
    }
    ours = _own_boot_ids(connection) if told else frozenset()
    if own := sorted(str(engine) for boot_id, engine in told if boot_id in ours):
        raise OwnEngineError(
            f"This address tells of this Tierscope's own engines ({', '.join(own)}): "
            "they are recorded already and would be counted twice."
        )


def _own_boot_ids(connection: redis.Redis) -> frozenset[str]:
    """Of every run within the last hour: an engine is published before it can be seen at /metrics."""
    return frozenset(key.rsplit(":", 1)[1] for key in valkey.final_keys(connection))
