"""Finds the adapter for a text. Knows the tables' marks only."""

from collections.abc import Set as AbstractSet

from dashboard.models import Source
from dashboard.sources.adapter import Adapted, Adapter, adapt
from dashboard.sources.exposition import Exposition, ExpositionError, parse
from dashboard.sources.tables import ADAPTERS, DETECTION_ORDER


def read(text: str, kind: str) -> Adapted:
    """`text` through the adapter of `kind` ("auto" finds it). Raises ExpositionError with a sentence for a person."""
    exposition = parse(text)
    return adapt(exposition, adapter_for(exposition, kind))


def adapter_for(exposition: Exposition, kind: str) -> Adapter:
    if kind == Source.Kind.EMBEDDED:
        kind = Source.Kind.TIERSCOPE
    if kind != Source.Kind.AUTO:
        return _named(kind)
    names = {sample.name for sample in exposition.samples}
    for adapter in DETECTION_ORDER:
        if any(_has(names, mark) for mark in adapter.marks):
            return adapter
    raise ExpositionError("No known engine's cache counters are in this metrics text; expected " + _known() + ".")


def _has(names: AbstractSet[str], mark: str) -> bool:
    if mark.endswith("*"):
        return any(name.startswith(mark[:-1]) for name in names)
    return mark in names


def _named(kind: str) -> Adapter:
    if kind not in ADAPTERS:
        raise ExpositionError(f"{kind!r} is no engine kind; expected auto or one of: {', '.join(ADAPTERS)}.")
    return ADAPTERS[kind]


def _known() -> str:
    return ", ".join(Source.Kind(kind).label for kind in ADAPTERS)
