"""What is being waited for after the start, in words for a person. Knows nothing about how processes are supervised."""

import json
from dataclasses import dataclass, field
from typing import Any

import httpx
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

_TIMEOUT_SECONDS = 2


def connect(url: str) -> redis.Redis:
    """A client that answers at once where nobody is there: redis-py would try again for ten seconds."""
    return redis.Redis.from_url(
        url,
        decode_responses=True,
        socket_timeout=_TIMEOUT_SECONDS,
        socket_connect_timeout=_TIMEOUT_SECONDS,
        retry=Retry(NoBackoff(), 0),
    )


@dataclass
class Probe:
    """Asks the running set how far it is. `engine_key` and `traffic_key` hold JSON in Valkey, `traffic_lock` is there
    while sample traffic is sent."""

    url: str
    valkey: redis.Redis
    engine_key: str
    traffic_key: str
    traffic_lock: str
    _saw_traffic: bool = field(default=False, init=False)
    # One for all: a client reads the system's certificates when it is made, 40 ms.
    _http: httpx.Client = field(default_factory=lambda: httpx.Client(timeout=_TIMEOUT_SECONDS), init=False)

    def is_ready(self) -> bool:
        """True once all that a request needs answers. Not asked before the engine is up: each 503 would be logged."""
        if self._read(self.engine_key).get("status") != "ready":
            return False
        try:
            return self._http.get(f"{self.url}/healthz").status_code == httpx.codes.OK
        except httpx.HTTPError:
            return False

    def engine_progress(self) -> str:
        """How far the model is, or why it cannot be loaded; "" while nobody tells."""
        state = self._read(self.engine_key)
        text, share = state.get("progress") or ("starting", 0.0)
        match state.get("status"):
            case "loading":
                return f"loading the model: {text} ({share:.0%})"
            case "failed":
                return f"The engine cannot start: {text}"
        return ""

    def traffic_progress(self) -> str:
        """ "sample traffic: 12 of 60 requests sent"; "" before any is sent: how an earlier run ended is no news."""
        self._saw_traffic = self._saw_traffic or self._exists(self.traffic_lock)
        state = self._read(self.traffic_key) if self._saw_traffic else {}
        return f"sample traffic: {state['message']}" if state.get("message") else ""

    def _exists(self, key: str) -> bool:
        try:
            return bool(self.valkey.exists(key))
        except redis.RedisError:
            return False

    def _read(self, key: str) -> dict[str, Any]:
        try:
            text = self.valkey.get(key)
        except redis.RedisError:
            return {}
        return dict(json.loads(text)) if isinstance(text, str) else {}
