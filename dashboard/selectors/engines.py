"""The live state of the embedded engines, as each publishes it in Valkey every second. Reads only; knows no models.

An engine that is not there is offline: its key expires a few seconds after its worker stops.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import redis

from dashboard import valkey


@dataclass(frozen=True)
class LiveTier:
    """One tier of a running engine. Where an engine does not tell a number it is None, never 0."""

    capacity_bytes: int = 0
    used_bytes: int = 0
    resident_tokens: int = 0
    resident_blocks: int | None = None
    block_bytes: int | None = None
    block_tokens: int | None = None
    max_bytes: int | None = None
    max_reason: str = ""
    min_bytes: int = 0
    min_reason: str = ""
    reason: str = ""
    warning: str = ""
    modes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class LiveEngine:
    """A worker that is alive.

    `status` is "loading" (`progress_text` and `progress`, 0..1, say how far), "ready", "stopping" or "failed"
    (`progress_text` says why).
    """

    name: str
    status: str
    boot_id: str = ""
    model_name: str = ""
    progress_text: str = ""
    progress: float = 0.0
    tiers: Mapping[str, LiveTier] = field(default_factory=dict)
    requests_running: int = 0
    requests_waiting: int = 0
    started_at: int = 0  # Unix seconds; 0 where an older engine does not tell


@dataclass(frozen=True)
class Fleet:
    """Every engine that is alive now, or the sentence that says why that cannot be known."""

    engines: Mapping[str, LiveEngine]
    problem: str = ""


def fleet() -> Fleet:
    """Never raises: without Valkey nothing is known, and `problem` says so."""
    prefix = valkey.engine_key("")
    try:
        connection = valkey.client()
        texts = {key.removeprefix(prefix): connection.get(key) for key in valkey.engine_keys(connection)}
    except redis.RedisError as error:
        return Fleet({}, f"Valkey cannot be reached, so the engines' state is unknown ({type(error).__name__}).")
    read = {name: read_engine(name, str(text)) for name, text in texts.items() if text}
    return Fleet({name: engine for name, engine in read.items() if engine})


def read_engine(name: str, text: str) -> LiveEngine | None:
    """What `text` tells of engine `name`; None where it is not the JSON object that an engine publishes."""
    try:
        told = json.loads(text)
        return _engine(name, told)
    except (ValueError, TypeError, AttributeError):
        return None


def _engine(name: str, told: dict[str, Any]) -> LiveEngine:
    progress_text, progress = told.get("progress") or ("", 0.0)
    return LiveEngine(
        name=name,
        status=str(told["status"]) if "status" in told else "ready",
        boot_id=str(told.get("boot_id", "")),
        model_name=str(told.get("model_name") or ""),
        progress_text=str(progress_text),
        progress=float(progress),
        tiers={str(tier): _tier(state) for tier, state in (told.get("tiers") or {}).items()},
        requests_running=int(told.get("requests_running") or 0),
        requests_waiting=int(told.get("requests_waiting") or 0),
        started_at=int(told.get("started_at") or 0),
    )


def _tier(told: dict[str, Any]) -> LiveTier:
    """Names that this version does not know are left out, so that a newer engine can say more."""
    return LiveTier(**{known.name: told[known.name] for known in fields(LiveTier) if told.get(known.name) is not None})
