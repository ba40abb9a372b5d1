"""Sends the requests of a trace with texts to an OpenAI-compatible API, as far apart as they came or faster.

Several at once, never more than `at_once`: where the engine is slower than the trace, requests come late, and how late
is told. What is longer than the model takes is counted, and left out. Knows no Celery and no file.
"""

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol

import httpx

from dashboard.sample_sender import SendError

_ANSWER_SECONDS = 300.0
_RETRY_SECONDS = 1.0
_NUM_RETRIES = 60
_KEPT = 5
_TOO_LONG = ("context_length_exceeded", "body_too_large")
_BUSY = (429, 503)


class Asked(Protocol):
    """What is read of a request (tiers/traces)."""

    @property
    def at_seconds(self) -> float: ...
    @property
    def num_output_tokens(self) -> int: ...
    @property
    def prompt(self) -> Any: ...


@dataclass
class Outcome:
    """What came of it: every request that was sent was answered, too long, or failed."""

    sent: int = 0
    answered: int = 0
    too_long: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    hit_tokens: dict[str, int] = field(default_factory=dict)
    latest_seconds: float = 0.0
    failures: list[str] = field(default_factory=list)

    def check(self) -> None:
        assert self.sent == self.answered + self.too_long + self.failed, "a request was sent and forgotten"


class RealSender:
    """One run against one API. `clock` and `sleep` are for tests."""

    def __init__(
        self,
        client: httpx.Client,
        model: str,
        *,
        speed: float,
        most_tokens: int,
        at_once: int,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client = client
        self._model = model
        self._speed = speed
        self._most_tokens = most_tokens
        self._at_once = at_once
        self._clock = clock
        self._sleep = sleep
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._refusal = ""
        self.outcome = Outcome()

    def send(self, requests: Iterable[Asked], on_done: Callable[[], None]) -> Outcome:
        """Until the last one is answered; `on_done` after each, by any thread. Raises SendError for a trace without
        texts or a key that is refused. An interrupt breaks off what is under way, and is raised.
        """
        free = threading.Semaphore(self._at_once)
        began_at = self._clock()
        pool = ThreadPoolExecutor(self._at_once)
        try:
            for request in requests:
                if request.prompt is None:
                    raise SendError("the trace has no texts, only hashes: it can be replayed without --real alone")
                free.acquire()
                self._wait_until(began_at + request.at_seconds / self._speed)
                if self._stopped.is_set():
                    break
                self.outcome.sent += 1
                pool.submit(self._one, request, on_done).add_done_callback(lambda _: free.release())
            pool.shutdown()
        except BaseException:
            self._stopped.set()
            self._client.close()  # what waits for an answer ends with an error
            pool.shutdown(cancel_futures=True)
            raise
        if self._refusal:
            raise SendError(self._refusal)
        return self.outcome

    def _wait_until(self, moment: float) -> None:
        left = moment - self._clock()
        if left > 0:
            self._sleep(left)
        self.outcome.latest_seconds = max(self.outcome.latest_seconds, -left)

    def _one(self, request: Asked, on_done: Callable[[], None]) -> None:
        try:
            answer = self._answer(request)
        except (httpx.HTTPError, RuntimeError) as error:  # RuntimeError: the client was closed
            self._count_failed(f"{type(error).__name__}: {error}")
        else:
            self._count(answer)
        on_done()

    def _answer(self, request: Asked) -> httpx.Response:
        path, body = self._body(request)
        for _ in range(_NUM_RETRIES):
            answer = self._client.post(path, json=body, timeout=_ANSWER_SECONDS)
            if answer.status_code not in _BUSY or self._stopped.wait(0):
                return answer
            self._sleep(_RETRY_SECONDS)
        return answer

    def _body(self, request: Asked) -> tuple[str, dict[str, Any]]:
        most = max(1, min(request.num_output_tokens, self._most_tokens))
        body = {"model": self._model, "max_tokens": most, "temperature": 0}
        if isinstance(request.prompt, str):
            return "/v1/completions", body | {"prompt": request.prompt}
        return "/v1/chat/completions", body | {"messages": list(request.prompt)}

    def _count(self, answer: httpx.Response) -> None:
        told = _json(answer)
        if answer.status_code in (401, 403):
            self._refusal = "the API key is not accepted; it may have been revoked in the admin"
            self._stopped.set()
        if not answer.is_success:
            error = told.get("error") or {}
            if error.get("code") in _TOO_LONG:
                with self._lock:
                    self.outcome.too_long += 1
            else:
                self._count_failed(f"{answer.status_code}: {error.get('message', answer.text[:200])}")
            return
        usage = told.get("usage") or {}
        with self._lock:
            self.outcome.answered += 1
            self.outcome.prompt_tokens += usage.get("prompt_tokens", 0)
            for tier, tokens in ((usage.get("tierscope") or {}).get("hit_tokens") or {}).items():
                self.outcome.hit_tokens[tier] = self.outcome.hit_tokens.get(tier, 0) + tokens

    def _count_failed(self, why: str) -> None:
        with self._lock:
            self.outcome.failed += 1
            if len(self.outcome.failures) < _KEPT:
                self.outcome.failures.append(why)


def _json(answer: httpx.Response) -> dict[str, Any]:
    try:
        told = answer.json()
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}
