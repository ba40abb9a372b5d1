"""The admin: one module a group of models. All writes go through services; what is counted cannot be edited."""

from dashboard.admin import (
    alerts,
    api_keys,
    backfills,
    discoveries,
    history,
    mappings,
    predictions,
    prices,
    recorded,
    retention,
    sources,
    tiers,
)

__all__ = [
    "alerts",
    "api_keys",
    "backfills",
    "discoveries",
    "history",
    "mappings",
    "predictions",
    "prices",
    "recorded",
    "retention",
    "sources",
    "tiers",
]
