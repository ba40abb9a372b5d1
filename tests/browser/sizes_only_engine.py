"""An engine that holds sizes and no model: the worker's real control and publishing threads around plain integers.

Run as a program beside a web process; what the admin asks for is applied here exactly as a worker would apply it.
"""

import signal
import threading
import time
from collections.abc import Mapping
from typing import Any

from dashboard.tier_modes import Modes

MIB = 2**20
BLOCK_BYTES = 720 * 1024
MAX_BYTES = {"gpu": 512 * MIB, "cpu": 1024 * MIB, "disk": 4096 * MIB}
DEFAULTS = {"gpu": 96 * MIB, "cpu": 192 * MIB, "disk": 2048 * MIB}


class SizesOnly:
    """What the controller needs of an engine. Half of every tier is in use until it is cleared."""

    name = "local"

    def __init__(self) -> None:
        self._capacities = dict(DEFAULTS)
        self._modes: dict[str, Modes] = {}
        self._used = {tier: num_bytes // 2 for tier, num_bytes in DEFAULTS.items()}

    def capacities(self) -> Mapping[str, int]:
        return dict(self._capacities)

    def resize(self, tier: str, num_bytes: int) -> str:
        if num_bytes > MAX_BYTES[tier]:
            return f"Only {MAX_BYTES[tier] // MIB} MiB are free."
        self._capacities[tier] = num_bytes // BLOCK_BYTES * BLOCK_BYTES
        self._used[tier] = min(self._used[tier], self._capacities[tier])
        return ""

    def modes(self, tier: str) -> Modes:
        return self._modes.get(tier, {})

    def configure(self, tier: str, modes: Modes) -> str:
        self._modes[tier] = modes
        return ""

    def clear(self, tier: str) -> int:
        num_blocks = self._used[tier] // BLOCK_BYTES
        self._used[tier] = 0
        return num_blocks

    def abort(self, run_id: str) -> None:
        pass

    def block_bytes(self, tier: str) -> int:
        return BLOCK_BYTES

    def describe(self) -> Mapping[str, Any]:
        return {
            "boot_id": "sizes-only",
            "at": time.time(),
            "status": "ready",
            "progress": ["", 1.0],
            "model_name": "none",
            "exposition": "",
            "tiers": {tier: self._tier(tier) for tier in DEFAULTS},
            "requests_running": 0,
            "requests_waiting": 0,
        }

    def _tier(self, tier: str) -> dict[str, Any]:
        return {
            "capacity_bytes": self._capacities[tier],
            "used_bytes": self._used[tier],
            "resident_blocks": self._used[tier] // BLOCK_BYTES,
            "resident_tokens": self._used[tier] // BLOCK_BYTES * 16,
            "block_bytes": BLOCK_BYTES,
            "max_bytes": MAX_BYTES[tier],
            "max_reason": "as this test has it",
            "modes": self.modes(tier),
        }


def main() -> None:
    import django

    django.setup()
    from dashboard import valkey
    from dashboard.engine_control import Controller
    from dashboard.engine_publisher import Publisher
    from dashboard.services.tiers import ensure_settings

    host, stopped = SizesOnly(), threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    ensure_settings(host.name, DEFAULTS)
    publisher = Publisher(valkey.client(), host.name, "sizes-only", host.describe)
    controller = Controller(host, valkey.client)
    publisher.start()
    controller.start()
    stopped.wait()
    controller.stop()
    publisher.stop()


if __name__ == "__main__":
    main()
