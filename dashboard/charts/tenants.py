"""Prompt tokens and hit rate by tenant, and the table with each tenant's tokens by tier. Knows no database."""

from collections.abc import Sequence
from typing import Any

from dashboard.charts import words
from dashboard.charts.palette import COMPUTED, LOOKS, TENANT_LOOKS, Look, tiers_in
from dashboard.charts.parts import (
    Figure,
    Number,
    Values,
    bars,
    covered_seconds,
    layout,
    line,
    milliseconds,
    unobserved,
)
from dashboard.selectors.tenants import TenantTotals
from dashboard.tenants import OTHER


def tenant_tokens_figure(series: dict[str, Any], now: float) -> Figure:
    """Args: `series` as `tenant_series` returns it."""
    starts, step = series["starts"], series["step_seconds"]
    x = milliseconds(starts)
    traces = [
        bars(name, x, _per_second(told["prompt"], starts, step, now), step * 1000, look.colour, look.pattern)
        | {"hovertemplate": "%{y:,.1f} tokens/s"}
        for name, told, look in _looked(series)
        if any(told["prompt"])
    ]
    return {"data": traces, "layout": _layout(series, now, {"rangemode": "tozero", "tickformat": "~s"})}


def tenant_hit_rate_figure(series: dict[str, Any], now: float) -> Figure:
    """Args: `series` as `tenant_series` returns it. No point where a tenant asked nothing."""
    x = [start + series["step_seconds"] * 500 for start in milliseconds(series["starts"])]
    traces: list[dict[str, Any]] = []
    for name, told, look in _looked(series):
        rates = [_rate(hit, prompt) for hit, prompt in zip(told["hit"], told["prompt"], strict=True)]
        hover = {"hovertemplate": "%{hovertext}", "hovertext": [words.percent(rate) for rate in rates]}
        traces.append(line(name, x, rates, look.colour, dash="dash" if look.pattern else "solid") | hover)
    return {"data": traces, "layout": _layout(series, now, {"tickformat": ".0%", "range": [0, 1.005]})}


def tenant_rows(totals: Sequence[TenantTotals]) -> list[dict[str, Any]]:
    """One row a tenant: tokens, share of all, hit rate, and its tokens by origin as parts of a bar."""
    everything = sum(told.prompt_tokens for told in totals)
    return [
        {
            "tenant": told.tenant,
            "tokens": told.prompt_tokens,
            "tokens_text": words.count(told.prompt_tokens),
            "share_text": words.percent(told.prompt_tokens / everything if everything else None),
            "hit_rate_text": words.percent(_rate(sum(told.hit_tokens.values()), told.prompt_tokens)),
            "origins": _origins(told),
        }
        for told in totals
    ]


def _origins(told: TenantTotals) -> list[dict[str, Any]]:
    counted = [(tier, told.hit_tokens[tier]) for tier in tiers_in(dict(told.hit_tokens))]
    return [
        {"origin": origin, "label": LOOKS[origin].label, "tokens": tokens, "tokens_text": words.count(tokens)}
        for origin, tokens in [*counted, (COMPUTED, told.computed_tokens)]
        if tokens
    ]


def _looked(series: dict[str, Any]) -> list[tuple[str, dict[str, Values], Look]]:
    """Colours by place: names are sorted, so that a tenant keeps its own while the same ones are drawn."""
    named = [name for name in series["tenants"] if name != OTHER]
    looks = dict(zip(named, TENANT_LOOKS, strict=False)) | {OTHER: LOOKS[COMPUTED]}
    return [(name, told, looks[name]) for name, told in series["tenants"].items()]


def _layout(series: dict[str, Any], now: float, yaxis: dict[str, Any]) -> dict[str, Any]:
    starts, step = series["starts"], series["step_seconds"]
    made = layout(starts, step, yaxis=yaxis | {"minallowed": 0})
    observed = next((told["prompt"] for told in series["tenants"].values()), [0] * len(starts))
    made["shapes"] = unobserved(starts, step, observed, now)
    return made


def _per_second(values: Values, starts: Sequence[int], step: int, now: float) -> list[Number | None]:
    return [
        None if value is None else round(value / covered_seconds(start, step, now), 3)
        for value, start in zip(values, starts, strict=True)
    ]


def _rate(hit: Number | None, prompt: Number | None) -> float | None:
    return round(hit / prompt, 5) if hit is not None and prompt else None
