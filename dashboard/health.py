"""/healthz: are the parts alive that an answer needs? JSON for people, the status code for probes. Tells no secrets.

An engine says every second that it is there, and counts as gone `ENGINE_TTL_SECONDS` after it was last heard: for that
long a killed one may still be called ready, and `heard_seconds_ago` says how old the news is. A shorter time would call
an engine down whose machine is merely busy; requests notice a dead one by themselves, and are run again.
"""

import time
from typing import Any

import redis
from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from dashboard import valkey
from dashboard.selectors.engines import Fleet, LiveEngine, fleet


@login_not_required
@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """200 where web, broker, database and at least one engine are up; else 503."""
    live = fleet()
    parts = {"web": {"ok": True}, "broker": _broker(), "database": _database(), "engine": _engine(live)}
    is_ok = all(part["ok"] for part in parts.values())
    answer = JsonResponse({"status": "ok" if is_ok else "down", **parts}, status=200 if is_ok else 503)
    answer["Cache-Control"] = "no-store"
    return answer


def _broker() -> dict[str, Any]:
    started_at = time.perf_counter()
    try:
        valkey.client().ping()
    except redis.RedisError as error:
        return {"ok": False, "problem": f"Valkey cannot be reached ({type(error).__name__})."}
    return {"ok": True, "seconds": round(time.perf_counter() - started_at, 4)}


def _database() -> dict[str, Any]:
    started_at = time.perf_counter()
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError as error:
        return {"ok": False, "problem": f"The database cannot be read ({type(error).__name__})."}
    return {"ok": True, "seconds": round(time.perf_counter() - started_at, 4)}


def _engine(live: Fleet) -> dict[str, Any]:
    states = {engine.name: _state(engine) for engine in live.engines.values()}
    is_ready = any(engine.status == "ready" for engine in live.engines.values())
    problem = {} if is_ready else {"problem": live.problem or "No engine is ready."}
    return {"ok": is_ready, "engines": states, **problem}


def _state(engine: LiveEngine) -> dict[str, Any]:
    state = {"status": engine.status, "model_name": engine.model_name, "progress": engine.progress_text}
    return state | {"heard_seconds_ago": _heard_seconds_ago(engine.name)}


def _heard_seconds_ago(engine: str) -> float | None:
    """By Valkey's clock, which counts the key's life down; None where it cannot be asked, or the key went just now."""
    try:
        left_ms = valkey.client().pttl(valkey.engine_key(engine))
    except redis.RedisError:
        return None
    return round(valkey.ENGINE_TTL_SECONDS - left_ms / 1000, 1) if left_ms >= 0 else None
