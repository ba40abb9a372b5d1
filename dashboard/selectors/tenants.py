"""Prompt tokens by tenant, and from which tier they came. Reads only.

Σ tenants = all tokens, tier by tier, of engines that tell their tenants. What others count is in none of them.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dashboard.models import ApiKey, Series
from dashboard.selectors.period import Period
from dashboard.selectors.store import Counters, Metric, Names, Sums, counters_of, grouped, names_of, totals_of
from dashboard.tenants import COMMON, OTHER

METRICS = (Metric.TENANT_PROMPT_TOKENS, Metric.TENANT_COMPUTED_TOKENS, Metric.TENANT_HIT_TOKENS)
_DRAWN = (Metric.TENANT_PROMPT_TOKENS, Metric.TENANT_COMPUTED_TOKENS)  # a series a tenant; hits have one a tier
MOST_DRAWN = 6  # more colours cannot be told apart; the rest is drawn as one
_MINUTES_AT_MOST = 6 * 3_600
_HOUR, _DAY = 3_600, 86_400


@dataclass
class TenantTotals:
    """A period's tokens of one tenant: `prompt_tokens == sum(hit_tokens) + computed_tokens`."""

    tenant: str
    prompt_tokens: int = 0
    computed_tokens: int = 0
    hit_tokens: dict[str, int] = field(default_factory=lambda: defaultdict(int))


def all_tenants() -> list[str]:
    """Every tenant that has a key or was ever counted by name, sorted, after the common pool; empty without any."""
    with_keys = ApiKey.objects.exclude(tenant="").values_list("tenant", flat=True)
    counted = counters_of((Metric.TENANT_PROMPT_TOKENS,), engine=None, model_name=None).values_list("detail", flat=True)
    named = {*with_keys, *counted} - {COMMON, OTHER, ""}
    return [COMMON, *sorted(named)] if named else []


def counted_tenants(engine: str) -> list[str]:
    """Those that an engine of that name has counted by name and that still may send something; the first ones first."""
    active = set(ApiKey.objects.filter(is_active=True).values_list("tenant", flat=True))
    counted = Series.objects.filter(metric=Metric.TENANT_PROMPT_TOKENS, engine=engine).order_by("pk")
    return [name for name in dict.fromkeys(counted.values_list("detail", flat=True)) if name and name in active]


def tenant_totals(period: Period, *, engine: str | None = None, model_name: str | None = None) -> list[TenantTotals]:
    """Tenants that asked for anything, the most tokens first; the rest that is not counted by name comes last."""
    series = counters_of(METRICS, engine=engine, model_name=model_name)
    found: dict[str, TenantTotals] = {}
    for (metric, tier, tenant), tokens in totals_of(series, period, "metric", "cache_tier", "detail").items():
        _book(found.setdefault(tenant, TenantTotals(tenant)), metric, tier, tokens)
    return sorted(found.values(), key=lambda told: (told.tenant == OTHER, -told.prompt_tokens, told.tenant))


def _book(told: TenantTotals, metric: str, tier: str, tokens: int) -> None:
    if metric == Metric.TENANT_HIT_TOKENS:
        told.hit_tokens[tier] += tokens
    elif metric == Metric.TENANT_PROMPT_TOKENS:
        told.prompt_tokens += tokens
    else:
        told.computed_tokens += tokens


def tenant_series(period: Period, *, engine: str | None = None, model_name: str | None = None) -> dict[str, Any]:
    """{"starts", "step_seconds", "tenants": {name: {"prompt", "hit"}}}: tokens a step, None where nothing was observed.

    The MOST_DRAWN tenants with the most tokens by name, sorted, then the rest as `other`, if it has any. Long periods
    come in whole hours or days: 132 series of three engines are 190,000 rows a day in minutes.
    """
    told = counters_of((Metric.SCRAPES, *_DRAWN), engine=engine, model_name=model_name)
    names = _most(totals_of(told.filter(metric=Metric.TENANT_PROMPT_TOKENS), period, "detail"))
    steps = _coarse(period)
    found = _sums(told, names, steps)
    groups = dict.fromkeys([*sorted(names - {OTHER}), *(names & {OTHER})])
    return {
        "starts": steps.starts,
        "step_seconds": steps.step_seconds,
        "tenants": {name: _values(name, found, steps) for name in groups},
    }


def _most(prompt_tokens: Mapping[Names, int]) -> set[str]:
    """Whom to draw by name, and `other` where that leaves anybody out."""
    by_tokens = sorted(prompt_tokens, key=lambda names: (names[0] == OTHER, -prompt_tokens[names], names))
    drawn = {name for (name,) in by_tokens[:MOST_DRAWN]}
    return drawn if len(by_tokens) == len(drawn) else drawn | {OTHER}


def _sums(told: Counters, names: set[str], steps: Period) -> Sums:
    """(metric, tenant or `other`) → Σ value a step; added up in the database, a part for each line that is drawn."""
    keys = {
        pk: (metric, tenant if tenant in names else OTHER)
        for pk, (metric, tenant) in names_of(told, "metric", "detail").items()
    }
    numbers = {key: number for number, key in enumerate(sorted(set(keys.values())))}
    found: Sums = defaultdict(dict)
    parts = list(numbers)
    for slot, part, value, _ in grouped({pk: numbers[key] for pk, key in keys.items()}, steps, told.model):
        found[parts[part]][slot] = value
    return found


def _values(name: str, found: Sums, steps: Period) -> dict[str, list[int | None]]:
    """What was hit is what was not computed."""
    observed = found.get((Metric.SCRAPES, OTHER), {})
    prompt, computed = (found.get((metric, name), {}) for metric in _DRAWN)
    slots = [slot if slot in observed else None for slot in range(len(steps.starts))]
    return {
        "prompt": [None if slot is None else prompt.get(slot, 0) for slot in slots],
        "hit": [None if slot is None else prompt.get(slot, 0) - computed.get(slot, 0) for slot in slots],
    }


def _coarse(period: Period) -> Period:
    if period.step_seconds < _HOUR and period.end - period.start > _MINUTES_AT_MOST:
        return period.in_steps_of(_HOUR)
    return period.in_steps_of(_DAY) if _HOUR < period.step_seconds < _DAY else period
