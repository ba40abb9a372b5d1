"""Prompt tokens by tenant, for as many tenants as are counted by name; the others are counted together.

Knows nothing about salts or blocks: whose cache a request may read is decided elsewhere.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.sequence import Admission
from tiers import TIERS, Tier

OTHER = "other"


@dataclass(frozen=True)
class TenantCounts:
    """Tokens since the engine started: `prompt_tokens == sum(hit_tokens) + computed_tokens`."""

    prompt_tokens: int
    hit_tokens: Mapping[Tier, int]
    computed_tokens: int


class Tenants:
    """`names` are counted from the start; whoever comes then, until there are `max_named`.

    A tenant that has once been counted with the others stays there: its tokens never move from one count to another.
    """

    def __init__(self, names: Sequence[str], max_named: int) -> None:
        self._max_named = max_named
        self._counts: dict[str, dict[Tier | None, int]] = {}  # None: computed
        for name in (OTHER, *names[:max_named]):
            self._add(name)

    def admitted(self, tenant: str, admission: Admission) -> None:
        counts = self._counts[self.name_of(tenant)]
        for tier, tokens in admission.hit_tokens.items():
            counts[tier] += tokens
        counts[None] += admission.computed_tokens

    def counts(self) -> dict[str, TenantCounts]:
        return {name: _frozen(counts) for name, counts in self._counts.items()}

    def name_of(self, tenant: str) -> str:
        """Under which it is counted, from now on."""
        if tenant not in self._counts and len(self._counts) <= self._max_named:
            self._add(tenant)
        return tenant if tenant in self._counts else OTHER

    def _add(self, name: str) -> None:
        self._counts[name] = dict.fromkeys((*TIERS, None), 0)


def _frozen(counts: Mapping[Tier | None, int]) -> TenantCounts:
    return TenantCounts(sum(counts.values()), {tier: counts[tier] for tier in TIERS}, counts[None])
