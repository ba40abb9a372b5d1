"""What other policies and write modes were found to serve, and on which trace an engine's can be tried. Reads only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dashboard.models import PolicySearch, Replay
from dashboard.policy_words import Setup, base_of, setup_of
from dashboard.selectors.tier_sizes import TierSize
from dashboard.trace_folder import TraceFileError, trace_path


@dataclass(frozen=True)
class Finding:
    """With these sizes and this setup each tier serves `change` more of the prompt tokens than the curve has it.

    The curve is LRU's, with the write modes of today.
    """

    sizes: Mapping[str, int]
    setup: Setup
    change: Mapping[str, float]


@dataclass(frozen=True)
class Trace:
    """A file or folder in the folder of traces."""

    file_name: str
    form: str


def trace_of(engine: str) -> Trace | None:
    """What a replay was made from, or what an engine recorded of its own traffic."""
    replay = Replay.objects.filter(source__name=engine).first()
    found = Trace(replay.file_name, replay.form) if replay else Trace(f"recorded-{engine}", "auto")
    try:
        trace_path(found.file_name)
    except TraceFileError:
        return None
    return found


def newest(engine: str) -> PolicySearch | None:
    return PolicySearch.objects.filter(engine=engine).first()


def findings(engine: str, tiers: Sequence[TierSize]) -> list[Finding]:
    """Of the newest search that has ended, also while another one goes on.

    Empty where the tiers are written to, or evict, in other ways today than when they were tried.
    """
    search = PolicySearch.objects.filter(engine=engine, state=PolicySearch.State.DONE).first()
    if search is None or [each["tier"] for each in search.tiers] != [each.tier for each in tiers]:
        return []
    if setup_of(search.tiers) != today(tiers):
        return []
    base = base_of(search.tiers)
    hits = {(each["sizes"], _setup(each["setup"])): each["hit"] for each in search.results}
    return [
        Finding(search.sizes[place], setup, _changes([each.tier for each in tiers], hit, hits[place, base]))
        for (place, setup), hit in hits.items()
        if (place, base) in hits and setup != base
    ]


def today(tiers: Sequence[TierSize]) -> Setup:
    return setup_of([as_told(each) for each in tiers])


def as_told(tier: TierSize) -> dict[str, str | int | float]:
    """As a search has it; what an engine does not tell is the default."""
    defaults = {"policy": "lru", "write_mode": "write_back", "store_after_hits": 2}
    told = {name: tier.modes.get(name, default) for name, default in defaults.items()}
    return {"tier": tier.tier, "bytes_a_token": tier.bytes_a_token, **told}


def _setup(stored: Sequence[Sequence[str]]) -> Setup:
    return tuple((policy, mode) for policy, mode in stored)


def _changes(names: Sequence[str], hit: Sequence[float], base: Sequence[float]) -> dict[str, float]:
    return {name: now - before for name, now, before in zip(names, hit, base, strict=True)}
