"""An engine worker that answers by script, for tests of everything between the client and the engine.

The last message is JSON: {"words": n, "pause": seconds between two, "wait": seconds before the first, "fail": why};
with "pool" each word is the tenant and the salt of the request.
Everything else is the product's own: Celery, streams, publisher, control thread.
"""

import json
import threading
import time
from collections.abc import Generator, Mapping
from typing import Any

from celery.signals import worker_init

from dashboard.celery import app
from dashboard.jobs import Job
from dashboard.streams import Event
from dashboard.tier_modes import Modes

__all__ = ["app"]

TIERS = ("gpu", "cpu", "disk", "remote")


class ScriptedHost:
    def __init__(self, name: str) -> None:
        self.name = name
        self.boot_id = "scripted"
        self.sizes = {"gpu": 1000, "cpu": 2000, "disk": 3000}
        self.configured: dict[str, Modes] = {}
        self.aborted: set[str] = set()
        self.running: set[str] = set()
        self.num_words = 0
        self.changed = threading.Lock()

    def generate(self, job: Job) -> Generator[Event, None, None]:
        script = self._script(job)
        self.running.add(job.run_id)
        try:
            yield from self._play(job, script)
        finally:
            self.running.discard(job.run_id)

    def _play(self, job: Job, script: Mapping[str, Any]) -> Generator[Event, None, None]:
        yield from self._quiet(job, script.get("wait", 0.0))
        num_sent, reason = 0, "length"
        for number in range(script.get("words", 3)):
            if job.run_id in self.aborted:
                reason = "abort"
                break
            word = json.dumps([job.tenant, job.cache_salt]) if script.get("pool") else f"w{number} "
            yield {"type": "token", "text": word}
            num_sent += 1
            with self.changed:
                self.num_words += 1
            time.sleep(script.get("pause", 0.0))
        if "fail" in script:
            reason = "error"
        yield self._done(script, num_sent, reason)

    def _quiet(self, job: Job, seconds: float) -> Generator[Event, None, None]:
        until = time.monotonic() + seconds
        while time.monotonic() < until and job.run_id not in self.aborted:
            yield {"type": "alive"}
            time.sleep(min(0.2, seconds))

    def _done(self, script: Mapping[str, Any], num_words: int, reason: str) -> Event:
        usage = {
            "prompt_tokens": 100,
            "hit_tokens": {"gpu": 48, "cpu": 16, "disk": 16, "remote": 0},
            "computed_tokens": 20,
            "generated_tokens": num_words,
            "slowest_tier": "disk",
            "ttft_seconds": 0.01,
        }
        runs = [{"text": "cached", "num_tokens": 80, "cache_tier": "gpu"}]
        runs.append({"text": "new", "num_tokens": 20, "cache_tier": None})
        return {
            "type": "done",
            "finish_reason": reason,
            "error": script.get("fail"),
            "usage": usage,
            "prompt": runs if script.get("prompt", True) else None,
        }

    def _script(self, job: Job) -> Mapping[str, Any]:
        text = job.prompt if job.messages is None else job.messages[-1]["content"]
        try:
            told = json.loads(text or "{}")
        except ValueError:
            return {}
        return told if isinstance(told, dict) else {}

    # -- what the control thread and the publisher ask -----------------------------------------------------------------
    def abort(self, run_id: str) -> None:
        self.aborted.add(run_id)

    def capacities(self) -> dict[str, int]:
        return dict(self.sizes)

    def block_bytes(self, tier: str) -> int:
        return 10

    def resize(self, tier: str, num_bytes: int) -> str:
        if num_bytes > 1_000_000:
            return "This machine has 1 MB."
        self.sizes[tier] = num_bytes // 10 * 10
        return ""

    def modes(self, tier: str) -> Modes:
        return self.configured.get(tier, {})

    def configure(self, tier: str, modes: Modes) -> str:
        if modes["store_after_hits"] < 1:
            return "store_after_hits is 0; expected 1 or more."
        self.configured[tier] = modes
        return ""

    def clear(self, tier: str) -> int:
        return 7

    def stop(self, drain_seconds: float, flush_seconds: float) -> None:
        deadline = time.monotonic() + drain_seconds
        while self.running and time.monotonic() < deadline:
            time.sleep(0.02)
        self.aborted |= self.running

    def describe(self) -> dict[str, Any]:
        exposition = (
            "# HELP tierscope_generated_tokens_total Tokens generated.\n"
            "# TYPE tierscope_generated_tokens_total counter\n"
            f'tierscope_generated_tokens_total{{model_name="scripted"}} {self.num_words}\n'
        )
        tiers = {
            tier: {"capacity_bytes": size, "block_bytes": 10, "block_tokens": 16} for tier, size in self.sizes.items()
        }
        return {
            "model_name": "scripted",
            "exposition": exposition,
            "tiers": tiers,
            "requests_running": len(self.running),
            "requests_waiting": 0,
            "aborted": sorted(self.aborted),
            "num_words": self.num_words,
        }


@app.task(name="tests.nothing", ignore_result=False)
def nothing() -> int:
    """A plain Celery task and its result: what bench/api.py compares an answer with."""
    return 1


@worker_init.connect
def host_by_script(**_: Any) -> None:
    from dashboard import engine_hosting

    engine_hosting._load = lambda name, progress: ScriptedHost(name)  # type: ignore[assignment,return-value]
