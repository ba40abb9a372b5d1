"""Publishes what a running engine publishes, so that the admin's tests need no worker."""

import json
from typing import Any

from dashboard import valkey

GIB = 2**30
BLOCK_BYTES = 737_280  # SmolLM2-135M: 2 · 30 layers · 16 tokens · 3 heads · 64 · 4 bytes


def publish(name: str = "local", *, status: str = "ready", **tiers: dict[str, Any]) -> None:
    """One snapshot of engine `name`; each keyword is a tier and overrides what it tells.

    It does not expire, as a worker's would: a test may wait for a minute until something is compiled.
    """
    told = {
        "boot_id": "b1",
        "at": 0,
        "status": status,
        "progress": ["reading weights", 0.4],
        "model_name": "SmolLM2-135M-Instruct",
        "exposition": "",
        "tiers": {tier: _tier(**told) for tier, told in tiers.items()},
        "requests_running": 2,
        "requests_waiting": 1,
    }
    valkey.client().set(valkey.engine_key(name), json.dumps(told))


def take_messages(name: str = "local") -> list[dict[str, Any]]:
    """What the engine's control thread would get now, oldest first."""
    texts = valkey.client().lrange(valkey.control_key(name), 0, -1)
    valkey.client().delete(valkey.control_key(name))
    return [json.loads(text) for text in texts]


def _tier(**told: Any) -> dict[str, Any]:
    return {
        "capacity_bytes": GIB,
        "used_bytes": GIB // 4,
        "resident_tokens": 5_824,
        "resident_blocks": 364,
        "block_bytes": BLOCK_BYTES,
        "block_tokens": 16,
        "max_bytes": 8 * GIB,
        "max_reason": "8 GiB of memory are free",
        "state": "ok",
        "reason": "",
        **told,
    }
