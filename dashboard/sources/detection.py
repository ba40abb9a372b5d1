"""Finds the adapter for a text. Knows the tables' marks only."""

from collections.abc import Set as AbstractSet

from dashboard.models import Source
from dashboard.sources.adapter import Adapted, adapt
from dashboard.sources.exposition import Exposition, ExpositionError, parse
from dashboard.sources.rules import Adapter
from dashboard.sources.tables import ADAPTERS, DETECTION_ORDER


def read(text: str, kind: str) -> Adapted:
    """`text` through the adapter of `kind` ("auto" finds it). Raises ExpositionError with a sentence for a person."""
    exposition = parse(text)
    return adapt(exposition, adapter_for(exposition, kind))


def adapter_for(exposition: Exposition, kind: str, typed: Adapter | None = None) -> Adapter:
    """The table of `kind`; `typed` is that of a mapping. Raises ExpositionError where there is none."""
    if kind == Source.Kind.MAPPING:
        return _typed(exposition, typed)
    if kind == Source.Kind.EMBEDDED:
        kind = Source.Kind.TIERSCOPE
    if kind != Source.Kind.AUTO:
        return _named(kind)
    for adapter in DETECTION_ORDER:
        if any(_has(exposition.names, mark) for mark in adapter.marks):
            return adapter
    raise ExpositionError(
        f"No known engine's cache counters are in this metrics text; expected {_known()}. Others are read by a mapping."
    )


def names_read_of(typed: Adapter | None) -> frozenset[str]:
    """The canonical names that a mapping, or any table, gives a meaning or is told by."""
    return _names(typed) if typed else _NAMES


def marks_of(kind: str, typed: Adapter | None) -> list[str]:
    """What tells an engine of this kind, or of any; canonical names, a trailing * is a prefix."""
    if kind == Source.Kind.MAPPING:
        return sorted(typed.marks) if typed else []
    adapters = DETECTION_ORDER if kind == Source.Kind.AUTO else [_named(kind)]
    return sorted({mark for adapter in adapters for mark in adapter.marks})


def _names(*adapters: Adapter) -> frozenset[str]:
    return frozenset(name for adapter in adapters for name in (*(rule.name for rule in adapter.rules), *adapter.marks))


_NAMES = _names(*DETECTION_ORDER)


def _typed(exposition: Exposition, typed: Adapter | None) -> Adapter:
    if typed is None or not typed.rules:
        raise ExpositionError("There is no mapping, or it has no rows: nothing of the text has a meaning.")
    if exposition.names.isdisjoint(typed.marks):
        raise ExpositionError(
            f"None of the mapping's metrics is in the text; expected {', '.join(sorted(typed.marks))}."
        )
    return typed


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
