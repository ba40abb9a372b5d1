"""How blocks get into a tier, out of it and up from it, and whose: as an admin chooses, by name, and in words.

Knows no engine and no database.
"""

from collections.abc import Mapping
from typing import Any

Modes = Mapping[str, Any]  # by these names
MODES = ("policy", "write_mode", "store_after_hits", "load", "tenant_quota")
MAX_STORE_AFTER_HITS = 1_000
MIN_TENANT_QUOTA = 0.01
_POLICIES = {"lru": "LRU", "s3fifo": "S3-FIFO", "arc": "ARC"}


def modes_of(holder: object) -> Modes:
    """Of whatever has them as attributes."""
    return {name: getattr(holder, name) for name in MODES}


def modes_in_words(tier: str, modes: Modes) -> str:
    """ "LRU, write selective at hit 3, loaded when cheaper"; of gpu only who leaves first. Empty for no modes."""
    if not modes:
        return ""
    parts = [_POLICIES.get(modes["policy"], str(modes["policy"]))]
    if tier != "gpu":
        parts += [_stored(modes), f"loaded {_plain(modes['load'])}"]
    if modes.get("tenant_quota", 1) < 1:
        parts.append(f"a tenant at most {share_in_words(modes['tenant_quota'])}")
    return ", ".join(parts)


def share_in_words(share: float) -> str:
    """ "12.5 %" """
    return f"{100 * share:g} %"


def _stored(modes: Modes) -> str:
    at_hit = f" at hit {modes['store_after_hits']}" if modes["write_mode"] == "write_selective" else ""
    return _plain(modes["write_mode"]) + at_hit


def _plain(word: object) -> str:
    return str(word).replace("_", " ")
