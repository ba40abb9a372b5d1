"""Which engines are alive, as this web process last read it from Valkey. Knows nothing about requests."""

import time
from collections.abc import Callable, Mapping

import redis.asyncio

from dashboard import valkey
from dashboard.selectors.engines import LiveEngine, read_engine

# An engine publishes once a second: reading more often would show nothing new.
_FRESH_SECONDS = 0.5


class EngineDirectory:
    """One a web process; a reader gets what was read at most 0.5 s ago."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._engines: Mapping[str, LiveEngine] = {}
        self._read_at = float("-inf")

    async def engines(self, connection: redis.asyncio.Redis, *, fresh: bool = False) -> Mapping[str, LiveEngine]:
        """Engines alive by name. Raises redis.RedisError when Valkey cannot be reached."""
        if fresh or self._clock() - self._read_at > _FRESH_SECONDS:
            self._engines = await read_engines(connection)
            self._read_at = self._clock()
        return self._engines


async def read_engines(connection: redis.asyncio.Redis) -> dict[str, LiveEngine]:
    prefix = valkey.engine_key("")
    keys = [key async for key in connection.scan_iter(match=f"{prefix}*", count=500)]
    texts = await connection.mget(keys) if keys else []
    names = (key.removeprefix(prefix) for key in keys)
    read = {name: read_engine(name, str(text)) for name, text in zip(names, texts, strict=True) if text}
    return {name: engine for name, engine in read.items() if engine}
