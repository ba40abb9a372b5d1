"""Every write of what tiers should be: sizes, modes, clears, and their history.

Knows nothing about forms or HTTP, nor how an engine resizes: it stores the wish and rings the engine's bell.
"""

import json
import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import datetime

import redis
from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction

from dashboard import valkey
from dashboard.models import TierChange, TierSetting
from dashboard.services.source_names import give_way
from dashboard.sizes import exact_size, format_size
from dashboard.tier_modes import Modes, modes_of, share_in_words

logger = logging.getLogger(__name__)

# An operation that no engine took within this time is dropped: a worker that starts reconciles anyway, and a clear that
# was asked of the last run must not surprise the next one.
CONTROL_TTL_SECONDS = 30

# What others shall find there has to come while it is new, not when everything faster has let it go.
_FIRST_WRITE_MODES = {"remote": "write_through"}


@dataclass(frozen=True)
class Wish:
    """What somebody wants of one tier."""

    desired_bytes: int
    policy: str
    write_mode: str
    store_after_hits: int
    load: str
    tenant_quota: float

    @classmethod
    def of(cls, setting: TierSetting) -> "Wish":
        return cls(**{field.name: getattr(setting, field.name) for field in fields(cls)})

    @property
    def modes(self) -> Modes:
        return modes_of(self)


class ChangedMeanwhileError(Exception):
    """Somebody else saved this tier after its page was opened; nothing was written."""


def ensure_settings(engine: str, defaults: Mapping[str, int]) -> None:
    """Creates the setting of every tier in `defaults` (bytes by tier name) that has none; what is there stays."""
    give_way(engine)
    for tier, num_bytes in defaults.items():
        first = {
            "desired_bytes": num_bytes,
            "write_mode": _FIRST_WRITE_MODES.get(str(tier), "write_back"),
            "tenant_quota": settings.TENANT_QUOTA,
        }
        TierSetting.objects.get_or_create(engine=engine, cache_tier=str(tier), defaults=first)


def record_applied(engine: str, tier: str, applied_bytes: int, reason: str, now: datetime) -> None:
    """The engine runs with `applied_bytes`; `reason` is "" where that is what was asked for."""
    TierSetting.objects.filter(engine=engine, cache_tier=str(tier)).update(
        applied_bytes=applied_bytes, applied_at=now, reason=reason
    )


def change(*, setting_id: int, seen: Wish, wish: Wish, author: User | None, now: datetime) -> list[TierChange]:
    """Stores `wish` and its history in one transaction, and tells the engine once that is committed.

    `seen` is what the author had before their eyes: where the tier is something else by now, raises
    ChangedMeanwhileError and writes nothing. A wish that changes nothing writes nothing.
    """
    if wish == seen:
        return []
    with transaction.atomic():
        same = TierSetting.objects.filter(pk=setting_id, **asdict(seen))
        if not same.update(**asdict(wish), reason="", changed_at=now):
            raise ChangedMeanwhileError
        setting = TierSetting.objects.get(pk=setting_id)
        changes = TierChange.objects.bulk_create(_changes(setting, seen, wish, author, now))
        transaction.on_commit(lambda: _tell(setting.engine, {"op": "reconcile"}))
    return changes


def clear(*, setting_id: int, author: User | None, now: datetime) -> TierChange:
    """Asks the engine to drop what one tier holds. The outcome arrives later by `record_cleared`."""
    with transaction.atomic():
        setting = TierSetting.objects.get(pk=setting_id)
        asked = TierChange.objects.create(
            engine=setting.engine, cache_tier=setting.cache_tier, action="clear", author=author, at=now
        )
        message = {"op": "clear", "tier": setting.cache_tier, "change_id": asked.pk}
        transaction.on_commit(lambda: _tell(setting.engine, message))
    return asked


def record_cleared(change_id: int, outcome: str) -> None:
    """What came of a clear, in a few words: "120 blocks dropped"."""
    TierChange.objects.filter(pk=change_id, action="clear").update(new_value=outcome[:64])


def _changes(setting: TierSetting, seen: Wish, wish: Wish, author: User | None, now: datetime) -> list[TierChange]:
    """One row for each thing that differs."""
    pairs = {
        "resize": _sizes(seen.desired_bytes, wish.desired_bytes),
        "policy": (seen.policy, wish.policy),
        "write_mode": (seen.write_mode, wish.write_mode),
        "store_after_hits": (f"at hit {seen.store_after_hits}", f"at hit {wish.store_after_hits}"),
        "load": (seen.load, wish.load),
        "tenant_quota": (share_in_words(seen.tenant_quota), share_in_words(wish.tenant_quota)),
    }
    return [
        TierChange(
            engine=setting.engine,
            cache_tier=setting.cache_tier,
            action=action,
            old_value=old,
            new_value=new,
            author=author,
            at=now,
        )
        for action, (old, new) in pairs.items()
        if old != new
    ]


def _sizes(before: int, after: int) -> tuple[str, str]:
    """As people read them; to the byte where they would look the same."""
    short = format_size(before), format_size(after)
    return short if short[0] != short[1] else (exact_size(before), exact_size(after))


def _tell(engine: str, message: dict[str, object]) -> None:
    """Rings the engine's bell. Without Valkey the wish is stored all the same and applied at the next reconcile."""
    key = valkey.control_key(engine)
    try:
        with valkey.client().pipeline() as pipeline:
            pipeline.rpush(key, json.dumps(message))
            pipeline.expire(key, CONTROL_TTL_SECONDS)
            pipeline.execute()
    except redis.RedisError as error:
        logger.warning("engine %s was not told about %s: %s", engine, message["op"], error)
