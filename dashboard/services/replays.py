"""Every write of replays but their going on: made, cancelled, resumed, removed with their series.

Knows nothing about how a trace is read or replayed (services/replaying.py), so the web process loads no tiers.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import transaction

from dashboard.models import CacheTier, Replay, Series, Source, TierSetting
from dashboard.replay_sizes import DEFAULT_BYTES_A_TOKEN, ReplaySize
from dashboard.services.removal import remove_series
from dashboard.services.source_names import check_name
from dashboard.tier_modes import MAX_STORE_AFTER_HITS, MIN_TENANT_QUOTA
from dashboard.trace_folder import TraceFileError, mark_of, trace_path

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
GOING_ON = (Replay.State.WAITING, Replay.State.RUNNING)
TIERS = tuple(tier for tier in CacheTier.values if tier != CacheTier.UNATTRIBUTED)
_MAX_UNFINISHED = 50
_BATCH = 20
_LONGEST_WISH = 56  # a source's name has 64 letters


@dataclass(frozen=True)
class TierWish:
    """One tier as somebody asked for it."""

    tier: str
    size: ReplaySize
    policy: str = TierSetting.Policy.LRU
    write_mode: str = TierSetting.WriteMode.WRITE_BACK
    store_after_hits: int = 2
    tenant_quota: float = 1.0

    def as_json(self) -> dict[str, Any]:
        told = asdict(self)
        size = told.pop("size")
        return {**told, "policy": str(self.policy), "write_mode": str(self.write_mode), **size}


@dataclass(frozen=True)
class Wanted:
    """What is to be replayed: from `starts_at` (Unix seconds), at the trace's own times, or so that it ends now."""

    name: str
    file_name: str
    tiers: Sequence[TierWish]
    form: str = "auto"
    bytes_a_token: int = DEFAULT_BYTES_A_TOKEN
    starts_at: int | None = None
    keeps_times: bool = False


def create(wanted: Wanted, *, author: User | None, now: datetime, worker: str = "") -> Replay:
    """Stored to be gone on with, by `worker` alone for a while if one is named. Raises ValidationError."""
    _check(wanted, now)
    mark = _mark(wanted.file_name)
    source = Source(name=wanted.name, kind=Source.Kind.REPLAY, is_enabled=False, due_at=now)
    source.full_clean()
    with transaction.atomic():
        source.save()
        replay = Replay(
            source=source,
            file_name=wanted.file_name,
            file_mark=mark,
            form=wanted.form,
            tiers=[tier.as_json() for tier in wanted.tiers],
            bytes_a_token=wanted.bytes_a_token,
            wished_start_at=wanted.starts_at,
            keeps_times=wanted.keeps_times,
            worker=worker,
            kept_until=now if worker else LONG_AGO,
            claimed_until=LONG_AGO,
            author=author,
            created_at=now,
        )
        replay.save()
    return replay


def cancel(replay: Replay, *, now: datetime) -> bool:
    """Ends it where it is; False where it had ended. What is in the series stays."""
    going_on = Replay.objects.filter(pk=replay.pk, state__in=GOING_ON)
    return bool(going_on.update(state=Replay.State.CANCELLED, finished_at=now, worker=""))


def resume(replay: Replay) -> bool:
    """Goes on where it was cancelled, or where it failed; False where it cannot."""
    ended = Replay.objects.filter(pk=replay.pk, state__in=(Replay.State.CANCELLED, Replay.State.FAILED))
    return bool(
        ended.update(
            state=Replay.State.WAITING, error="", finished_at=None, kept_until=LONG_AGO, claimed_until=LONG_AGO
        )
    )


def remove(replay: Replay) -> None:
    """With its series; whoever is on it notices when it wants to book. The trace's file stays."""
    source_id = replay.source_id
    Replay.objects.filter(pk=replay.pk).delete()
    _remove_series(source_id)


def remove_leftovers() -> None:
    """Series of replays whose removal was broken off: no page shows them, and they keep the name."""
    for source_id in Source.objects.filter(kind=Source.Kind.REPLAY, replay=None).values_list("pk", flat=True):
        _remove_series(source_id)


def _remove_series(source_id: int) -> None:
    ids = list(Series.objects.filter(source_id=source_id).values_list("pk", flat=True))
    for start in range(0, len(ids), _BATCH):  # in portions, so that no writer waits for long
        with transaction.atomic():
            remove_series(ids[start : start + _BATCH])
    Source.objects.filter(pk=source_id, kind=Source.Kind.REPLAY).delete()


def _check(wanted: Wanted, now: datetime) -> None:
    """Raises ValidationError with a sentence for a person."""
    check_name(wanted.name)
    names = [tier.tier for tier in wanted.tiers]
    if names[:1] != [CacheTier.GPU] or names != [tier for tier in TIERS if tier in names]:
        raise ValidationError(
            {"tiers": "Name the tiers fastest first, each once, and gpu always: gpu, cpu, disk, remote."}
        )
    if not wanted.tiers[0].size.amount:
        raise ValidationError({"tiers": "The gpu tier needs at least one block: every request goes through it."})
    for tier in wanted.tiers:
        _check_modes(tier)
    if not 1 <= wanted.bytes_a_token <= 1 << 30:
        raise ValidationError({"bytes_a_token": "Bytes a token have to be from 1 to 1 GiB."})
    if wanted.starts_at is not None and not 0 <= wanted.starts_at <= now.timestamp():
        raise ValidationError({"starts_at": "The start has to lie between 1970 and now."})
    if Replay.objects.filter(state__in=GOING_ON).count() >= _MAX_UNFINISHED:
        raise ValidationError(
            f"{_MAX_UNFINISHED} replays are waiting or running; wait for some of them, or cancel them."
        )


def _check_modes(tier: TierWish) -> None:
    if tier.policy not in TierSetting.Policy.values or tier.write_mode not in TierSetting.WriteMode.values:
        raise ValidationError(
            {"tiers": f"The {tier.tier} tier has no policy “{tier.policy}” or mode “{tier.write_mode}”."}
        )
    if not 1 <= tier.store_after_hits <= MAX_STORE_AFTER_HITS:
        raise ValidationError({"tiers": f"A block is stored at a hit from 1 to {MAX_STORE_AFTER_HITS:,}."})
    if not MIN_TENANT_QUOTA <= tier.tenant_quota <= 1:
        raise ValidationError({"tiers": f"A tenant's largest share is from {MIN_TENANT_QUOTA} to 1."})


def _mark(file_name: str) -> str:
    try:
        return mark_of(trace_path(file_name))
    except (TraceFileError, OSError) as error:
        raise ValidationError({"file": str(error)}) from None


def free_name(wish: str) -> str:
    """`wish`, or with a number behind it where that is taken."""
    wish = wish[:_LONGEST_WISH]
    taken = set(Source.objects.filter(name__startswith=wish).values_list("name", flat=True))
    number = 1
    while (name := wish if number == 1 else f"{wish}-{number}") in taken:
        number += 1
    return name
