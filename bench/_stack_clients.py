"""People and programs that use a whole Tierscope at once: chats through `openai`, pages, probes, an admin who resizes.

Knows nothing about what is measured meanwhile.
"""

import json
import random
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from typing import Any

import openai

from tests.e2e.looks import logged_in
from tests.e2e.stack import Stack
from tests.e2e.workload import FILE_BYTES

_SYSTEMS = [f"You are {who}. " + "Be kind, be brief, be exact. " * 10 for who in ("a cook", "a pilot", "a poet")]
_WORDS = ["bread", "water", "stone", "river", "cloud", "glass", "paper", "music", "north", "green", "seven", "early"]
_MAX_TURNS = 6
_PAGES = (
    "/",
    "/requests/",
    "/api/tiles.json",
    "/api/charts/tokens.json",
    "/api/charts/ttft.json",
    "/metrics",
    "/healthz",
    "/admin/",
)


class Clients:
    """`ended` counts how requests ended; `wrong` holds a sentence for each end that should not have been."""

    def __init__(self, stack: Stack, num_chats: int) -> None:
        self._stack = stack
        self._page = logged_in(stack, 30)
        self._is_over = threading.Event()
        self._lock = threading.Lock()
        self.ended: Counter[str] = Counter()
        self.wrong: list[str] = []
        work: list[Callable[[], None]] = [self._look, self._resize]
        work += [Chat(self, stack, seed).turn for seed in range(num_chats)]
        self._threads = [threading.Thread(target=self._repeat, args=(each,)) for each in work]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join(120)
            if thread.is_alive():
                self.tell("hangs", "a client hangs")
        self._page.close()

    def tell(self, how: str, wrong: str = "") -> None:
        with self._lock:
            self.ended[how] += 1
            if wrong:
                self.wrong.append(wrong)

    def _repeat(self, work: Callable[[], None]) -> None:
        while not self._is_over.is_set():
            try:
                work()
            except Exception as error:
                self.tell("failed", f"{type(error).__name__}: {error}")
                self._is_over.wait(1)

    def _look(self) -> None:
        """A browser on all the pages in turn, with Prometheus and a probe beside it."""
        for path in _PAGES:
            self._page.get(path).raise_for_status()
            self.tell("looked")
            self._is_over.wait(0.2)

    def _resize(self) -> None:
        tier, num_blocks = random.choice([("cpu", 20), ("cpu", 60), ("disk", 40), ("disk", 200)])
        wish = "UPDATE dashboard_tiersetting SET desired_bytes = ? WHERE cache_tier = ?"
        with closing(sqlite3.connect(self._stack.database, timeout=20)) as connection, connection:
            connection.execute(wish, (num_blocks * FILE_BYTES, tier))
        with self._stack.valkey() as valkey:
            valkey.rpush("ts:control:local", json.dumps({"op": "reconcile"}))
        self.tell("resized")
        self._is_over.wait(5)


class Chat:
    """One person who chats, sometimes streams, sometimes hangs up, and starts over after a few turns."""

    def __init__(self, clients: Clients, stack: Stack, seed: int) -> None:
        self._clients = clients
        self._random = random.Random(seed)
        self._client = stack.openai(timeout=120)
        self._model = self._client.models.list().data[0].id
        self._messages: list[dict[str, str]] = []

    def turn(self) -> None:
        if not self._messages or len(self._messages) > 2 * _MAX_TURNS:
            self._messages = [{"role": "system", "content": self._random.choice(_SYSTEMS)}]
        self._say("user", " ".join(self._random.choices(_WORDS, k=8)))
        how = self._random.choices([self._whole, self._stream, self._hang_up, self._leave], weights=[4, 4, 1, 1])[0]
        how()

    def _say(self, role: str, content: str) -> None:
        self._messages.append({"role": role, "content": content})

    def _ask(self, **options: Any) -> Any:
        ask = self._client.chat.completions.create
        return ask(model=self._model, messages=self._messages, max_tokens=self._random.randint(1, 12), **options)

    def _whole(self) -> None:
        choice = self._ask().choices[0]
        self._say("assistant", choice.message.content)
        self._clients.tell(choice.finish_reason)

    def _stream(self) -> None:
        chunks = [chunk.choices[0] for chunk in self._ask(stream=True) if chunk.choices]
        reason = chunks[-1].finish_reason
        self._say("assistant", "".join(chunk.delta.content or "" for chunk in chunks))
        self._clients.tell(f"streamed {reason}", "" if reason else "a stream ended without a reason")

    def _hang_up(self) -> None:
        """After the first word."""
        with self._ask(stream=True) as stream:
            next(iter(stream))
        self._messages.clear()
        self._clients.tell("hung up")

    def _leave(self) -> None:
        """Before the first word."""
        try:
            self._ask(timeout=0.05)
            self._clients.tell("in time")
        except openai.APITimeoutError:
            self._clients.tell("left")
        self._messages.clear()


def settle(stack: Stack, seconds: float = 30) -> None:
    """Returns when no request runs or waits any more."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        told = json.loads(str(stack.valkey().get("ts:engine:local") or "{}"))
        if told and not told.get("requests_running") and not told.get("requests_waiting"):
            return
        time.sleep(0.5)
