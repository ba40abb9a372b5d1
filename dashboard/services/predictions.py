"""Applies the sizes of several tiers at once and keeps what was predicted for them. Knows no forms, no HTTP."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User
from django.db import transaction

from dashboard.models import Prediction, TierChange
from dashboard.services import tiers
from dashboard.services.tiers import Wish


@dataclass(frozen=True)
class SizeWish:
    """What somebody wants of one tier, and what they had before their eyes."""

    setting_id: int
    cache_tier: str
    seen: Wish
    wish: Wish


def apply_sizes(
    wishes: Sequence[SizeWish], *, prediction: Prediction | None, author: User | None, now: datetime
) -> list[TierChange]:
    """All of them or none; `prediction`, not yet saved, is kept where anything changed.

    Raises ChangedMeanwhileError where somebody else saved one of the tiers after the page was opened.
    """
    with transaction.atomic():
        changes = [
            change
            for each in wishes
            for change in tiers.change(
                setting_id=each.setting_id, seen=each.seen, wish=each.wish, author=author, now=now
            )
        ]
        if changes and prediction is not None:
            prediction.author, prediction.at = author, now
            prediction.old_sizes = {each.cache_tier: each.seen.desired_bytes for each in wishes}
            prediction.sizes = {each.cache_tier: each.wish.desired_bytes for each in wishes}
            prediction.save()
    return changes
