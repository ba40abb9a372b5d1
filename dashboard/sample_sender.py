"""Sends a plan of conversations to an OpenAI-compatible API, one turn after the other. Knows no Celery."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import httpx

from dashboard.sample_plan import Turn

Message = dict[str, str]
MAX_TOKENS = 12
_TURN_SECONDS = 120.0
# An idle machine of two cores needs a minute for the whole; a busy one is not kept busier for longer than this.
_RUN_SECONDS = 300.0
_RETRY_SECONDS = 1.0
_NUM_RETRIES = 30
STOPPED = "the worker was stopped"


class SendError(Exception):
    """Why the traffic ended early, in one sentence."""


class Sender:
    """One run against one API, until `is_stopping`. `sleep` and `clock` are for tests."""

    def __init__(
        self,
        client: httpx.Client,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        is_stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self._client = client
        self._clock = clock
        self._sleep = sleep
        self._is_stopping = is_stopping

    def wait_for_model(self, seconds: float, on_wait: Callable[[], None] = lambda: None) -> str:
        """The first model that is served, once one is. Raises SendError after `seconds`, or when the key is refused."""
        deadline = self._clock() + seconds
        while True:
            if served := self._models():
                return str(served[0]["id"])
            if self._clock() >= deadline:
                raise SendError(f"no model was ready within {seconds:.0f} s")
            on_wait()
            self._wait()

    def send(self, turns: Sequence[Turn], model: str, on_sent: Callable[[int], None]) -> int:
        """Sends every turn after all that was said before it; `on_sent(n)` after each. How many. Raises SendError."""
        said: dict[int, list[Message]] = {}
        deadline = self._clock() + _RUN_SECONDS
        for num_sent, turn in enumerate(turns, start=1):
            if self._clock() > deadline:
                raise SendError(f"this machine is slow, {_RUN_SECONDS:.0f} s are over")
            messages = said.setdefault(turn.conversation, [{"role": "system", "content": turn.instructions}])
            messages.append({"role": "user", "content": turn.message})
            messages.append({"role": "assistant", "content": self._complete(model, messages)})
            on_sent(num_sent)
            self._raise_if_stopping()
        return len(turns)

    def _wait(self) -> None:
        self._raise_if_stopping()
        self._sleep(_RETRY_SECONDS)

    def _raise_if_stopping(self) -> None:
        if self._is_stopping():
            raise SendError(STOPPED)

    def _models(self) -> list[dict[str, Any]]:
        try:
            answer = self._client.get("/v1/models", timeout=_TURN_SECONDS)
        except httpx.TransportError:  # the web process may be starting beside us
            return []
        _raise_for_key(answer)
        return list(answer.json()["data"]) if answer.is_success else []

    def _complete(self, model: str, messages: list[Message]) -> str:
        body = {"model": model, "messages": messages, "max_tokens": MAX_TOKENS, "temperature": 0}
        for _ in range(_NUM_RETRIES):
            answer = self._post(body)
            if answer.status_code not in (429, 503):
                return _text(answer)
            self._wait()
        raise SendError(f"the engine was not there for {_NUM_RETRIES * _RETRY_SECONDS:.0f} s")

    def _post(self, body: dict[str, Any]) -> httpx.Response:
        try:
            return self._client.post("/v1/chat/completions", json=body, timeout=_TURN_SECONDS)
        except httpx.TimeoutException:
            raise SendError(f"an answer took longer than {_TURN_SECONDS:.0f} s") from None
        except httpx.TransportError:
            raise SendError("the web process cannot be reached") from None


def _text(answer: httpx.Response) -> str:
    _raise_for_key(answer)
    if not answer.is_success:
        raise SendError(f"the API answered {answer.status_code}: {answer.text[:200]}")
    # An empty answer is legal; the next turn's prompt wants some text there.
    return answer.json()["choices"][0]["message"]["content"] or "…"


def _raise_for_key(answer: httpx.Response) -> None:
    if answer.status_code in (401, 403):
        raise SendError("the default API key is not accepted; it may have been revoked in the admin")
