"""How alerts are called outside: the names, severities and runbooks of deploy/prometheus/rules.yml, and their defaults.

A test compares both. Knows no database.
"""

from collections.abc import Mapping
from dataclasses import dataclass

SEVERITY = "warning"


@dataclass(frozen=True)
class AlertWords:
    """`threshold` and `for_minutes` are what a rule begins with; `measures` is what the threshold is a share of."""

    name: str
    runbook: str
    for_minutes: int
    threshold: float | None = None
    measures: str = ""


WORDS: Mapping[str, AlertWords] = {
    "hit_rate_fell": AlertWords(
        "TierscopeHitRateFell",
        "docs/runbook.md#hit-rate-fell",
        30,
        0.7,
        "An hour's hit rate is below this share of the same hour a week ago.",
    ),
    "slow_tier": AlertWords(
        "TierscopeSlowTierServesMost",
        "docs/runbook.md#slow-tier-serves-most",
        30,
        0.5,
        "More than this share of an hour's hit tokens comes from disk or remote.",
    ),
    "thrashing": AlertWords(
        "TierscopeTierThrashing",
        "docs/runbook.md#tier-thrashing",
        15,
        0.05,
        "More than 95 % of the tier is used, and more than this share of an hour's prompt tokens is computed again "
        "soon after the tier dropped them.",
    ),
    "remote_down": AlertWords(
        "TierscopeRemoteDown",
        "docs/runbook.md#remote-down",
        5,
        measures="The engine has given up the remote tier's server.",
    ),
    "source_stale": AlertWords(
        "TierscopeSourceStale",
        "docs/runbook.md#source-stale",
        5,
        measures="A source that should be read could not be read lately.",
    ),
}


def labels_of(kind: str, told: Mapping[str, str]) -> dict[str, str]:
    """The labels as Alertmanager would get them from Prometheus."""
    return {"alertname": WORDS[kind].name, "severity": SEVERITY, **told}
