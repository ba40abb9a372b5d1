"""Once a second: what an engine says about itself, into Valkey with a time to live. Knows nothing about its content."""

import json
import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any

import redis

from dashboard import valkey

logger = logging.getLogger(__name__)

_EVERY_SECONDS = 1.0


class Publisher:
    """`describe` gives the document; a Valkey that is away is tried again every second, and said once."""

    def __init__(
        self, connection: redis.Redis, engine: str, boot_id: str, describe: Callable[[], Mapping[str, Any]]
    ) -> None:
        self._connection = connection
        self._engine_key = valkey.engine_key(engine)
        self._final_key = valkey.final_key(engine, boot_id)
        self._describe = describe
        self._stopped = threading.Event()
        self._is_away = False
        self._thread = threading.Thread(target=self._run, name="publisher", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """The last words stay for the recorder; the engine itself is gone at once for everybody else."""
        self._stopped.set()
        self._thread.join()
        self._guarded(self._publish_last)

    def publish(self) -> None:
        self._guarded(self._publish)

    def _run(self) -> None:
        while not self._stopped.is_set():
            self.publish()
            self._stopped.wait(_EVERY_SECONDS)

    def _publish(self) -> None:
        text = json.dumps(self._describe())
        pipeline = self._connection.pipeline(transaction=False)
        pipeline.set(self._engine_key, text, ex=valkey.ENGINE_TTL_SECONDS)
        pipeline.set(self._final_key, text, ex=valkey.FINAL_TTL_SECONDS)
        pipeline.execute()

    def _publish_last(self) -> None:
        self._publish()
        self._connection.delete(self._engine_key)

    def _guarded(self, publish: Callable[[], None]) -> None:
        """Measuring never brings down the engine: whatever goes wrong is logged, once until it works again."""
        try:
            publish()
        except Exception as error:
            if not self._is_away:
                is_expected = isinstance(error, redis.RedisError)
                logger.warning("cannot publish the engine's state: %s", error, exc_info=None if is_expected else error)
            self._is_away = True
        else:
            if self._is_away:
                logger.info("the engine's state is published again")
            self._is_away = False
