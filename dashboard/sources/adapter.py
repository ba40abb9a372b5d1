"""Turns samples into canonical counters and gauges by a table. Knows no engine: every name lives in tables/."""

import hashlib
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from dashboard.models import CacheTier, Series
from dashboard.sources.exposition import MAX_PROBLEMS, Exposition, ExpositionError, Sample
from dashboard.sources.rules import Adapter, Metric, Rule

HIT_TIERS = tuple(CacheTier.values)
MAX_SERIES = 5_000  # an engine has about a hundred a model; a label that never repeats would fill the database
MAX_MODEL = 200  # characters that a series has for it
_MAX_DETAIL = 32
_MAX_FIRST = 15  # of two labels that share the 48 characters of a series' detail
# Texts tell floats: beyond this they no longer tell one from the next; and 1,000 engines fit into one 64-bit sum.
_LARGEST = 2**53
_WORDS = {
    Metric.TTFT.value: "time to first token",
    Metric.LOAD_TIMES.value: "load times",
    Metric.REUSE_GAPS.value: "seconds between two uses of a block",
}
HISTOGRAMS = frozenset(_WORDS)


class Key(NamedTuple):
    """A tuple, since each is hashed nine times on its way into the store."""

    engine: str
    model_name: str
    metric: str
    cache_tier: str = ""
    detail: str = ""


@dataclass(frozen=True)
class Adapted:
    """What one text says, canonically. Histogram counters are per `le`, not cumulative; `at` is an Exposition's."""

    kind: str
    computed: str
    counters: Mapping[Key, int]
    gauges: Mapping[Key, int]
    problems: tuple[str, ...] = ()
    note: str = ""
    at: datetime | None = None

    @property
    def models(self) -> list[tuple[str, str]]:
        """(engine, model_name) of everything seen, sorted."""
        return sorted({(key.engine, key.model_name) for key in (*self.counters, *self.gauges)})


_Child = tuple[Key, frozenset[tuple[str, str]]]  # what the children of one fact have in common


@dataclass
class _Sums:
    """Sums while samples are read. One unreadable child spoils its sum: part of a counter would look like a restart."""

    values: dict[Key, float] = field(default_factory=lambda: defaultdict(int))
    repeated: dict[_Child, float] = field(default_factory=lambda: defaultdict(int))
    spoiled: set[Key] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)

    def add(self, key: Key, rule: Rule, sample: Sample) -> None:
        value = sample.value if not rule.value_label else _number(sample.labels.get(rule.value_label, ""))
        if value is None:
            return
        if not (math.isfinite(value) and 0 <= value * rule.scale <= _LARGEST):
            self.spoiled.add(key)
            self.problems.append(f"{sample.name} is {value}, which is no count: {key.metric} is skipped this time.")
        elif rule.same:
            child = key, frozenset(pair for pair in sample.labels.items() if pair[0] not in rule.same)
            self.repeated[child] = max(self.repeated[child], _whole(value) * rule.scale)
        else:
            self.values[key] += _whole(value) * rule.scale

    def whole(self) -> dict[Key, int]:
        """The sums that can be trusted. A histogram without one of its buckets would move counts to its neighbour."""
        for (key, _), value in self.repeated.items():
            self.values[key] += value
        histograms = {_histogram(key) for key in self.spoiled if key.metric in HISTOGRAMS}
        return {
            key: round(value)
            for key, value in self.values.items()
            if key not in self.spoiled and _histogram(key) not in histograms
        }


def _whole(value: float) -> float:
    """An integer where it is one: sums of floats lose single tokens above 2**53."""
    return int(value) if value.is_integer() else value


def _number(text: str) -> float | None:
    with suppress(ValueError):
        return float(text)
    return None


def _histogram(key: Key) -> Key:
    return key._replace(detail="")


def adapt(exposition: Exposition, adapter: Adapter) -> Adapted:
    """The canonical counters and gauges of one text. Odd numbers never raise: they are told in `problems`.

    Raises ExpositionError for a text with more series than any engine has.
    """
    sums = _Sums(problems=list(exposition.problems))
    rules = _readable_rules(exposition, adapter)
    for sample in _once(exposition.samples, rules, sums.problems):
        for rule in rules[sample.name]:
            if rule.matches(sample.labels):
                sums.add(_key(adapter, rule, sample.labels), rule, sample)
    whole = sums.whole()
    if len(whole) > MAX_SERIES:
        raise ExpositionError(f"The engine tells {len(whole):,} series; at most {MAX_SERIES:,} are recorded.")
    values = _with_models(_split_histograms(whole, sums.problems))
    counters = {key: value for key, value in values.items() if key.metric not in Series.GAUGES}
    gauges = {key: value for key, value in values.items() if key.metric in Series.GAUGES}
    sums.problems.extend(_contradictions(counters))
    return Adapted(
        adapter.kind,
        _computed(adapter, counters),
        counters,
        gauges,
        _few(sums.problems),
        _note(adapter, exposition),
        exposition.at,
    )


def _note(adapter: Adapter, exposition: Exposition) -> str:
    is_meant = not adapter.note_of or not exposition.names.isdisjoint(adapter.note_of)
    return adapter.note if is_meant else ""


def _readable_rules(exposition: Exposition, adapter: Adapter) -> dict[str, list[Rule]]:
    """By name. A metric of which a line could not be read is left out: a part of it would look like a restart."""
    holding = [rule for rule in adapter.rules if rule.holds(exposition.names)]
    torn = {rule.metric for rule in holding if rule.name in exposition.unreadable}
    rules: dict[str, list[Rule]] = defaultdict(list)
    for rule in holding:
        if rule.metric not in torn:
            rules[rule.name].append(rule)
    return rules


def _few(problems: list[str]) -> tuple[str, ...]:
    """Each sentence once, and not more of them than a person reads."""
    once = list(dict.fromkeys(problems))
    more = [f"{len(once) - MAX_PROBLEMS:,} more such remarks are left out."] if len(once) > MAX_PROBLEMS else []
    return (*once[:MAX_PROBLEMS], *more)


def _with_models(values: Mapping[Key, int]) -> dict[Key, int]:
    """A size that names no model is about the only one that its engine has (vLLM tells its cache's so).

    Counters keep what they are told with: a model that appears later must not rename them.
    """
    models: dict[str, set[str]] = defaultdict(set)
    for key in values:
        models[key.engine].add(key.model_name)
    only = {engine: max(names) for engine, names in models.items() if len(names - {""}) == 1}
    return {
        key._replace(model_name=key.model_name or only.get(key.engine, ""))
        if key.metric in Series.GAUGES
        else key: value
        for key, value in values.items()
    }


def _computed(adapter: Adapter, counters: Mapping[Key, int]) -> str:
    """A build that should tell computed tokens and does not still tells what they follow from."""
    is_told = any(key.metric == Metric.COMPUTED_TOKENS for key in counters)
    return "derived" if adapter.computed == "told" and not is_told else adapter.computed


def _key(adapter: Adapter, rule: Rule, labels: Mapping[str, str]) -> Key:
    return Key(
        engine=_first(labels, adapter.engine_labels),
        model_name=shortened(_first(labels, adapter.model_labels), MAX_MODEL),
        metric=rule.metric.value,
        cache_tier=rule.tier.tier(labels),
        detail=_detail(rule, labels),
    )


def _detail(rule: Rule, labels: Mapping[str, str]) -> str:
    """A bucket's bound in one spelling: "1", "1.0" and "1e0" are the same."""
    value = readable(labels.get(rule.detail_label, ""))
    if rule.metric in HISTOGRAMS:
        with suppress(ValueError):
            return "+Inf" if math.isinf(float(value)) else f"{float(value):g}"
    value = shortened(value, _MAX_DETAIL)
    return f"{value[:_MAX_FIRST]} {shortened(whose, _MAX_DETAIL)}" if (whose := _whose(rule, labels)) else value


def _whose(rule: Rule, labels: Mapping[str, str]) -> str:
    return readable(labels.get(rule.whose_label, ""))


def shortened(text: str, length: int) -> str:
    """`text`, or where it is longer than that its begin with a digest: what differs behind the cut stays apart."""
    if len(text) <= length:
        return text
    return f"{text[: length - 13]}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def readable(name: str) -> str:
    """A name that can be typed and asked for: addresses and columns take no NUL, half a character or line's end."""
    return name if name.isprintable() else "".join(letter if letter.isprintable() else "?" for letter in name)


def _first(labels: Mapping[str, str], names: tuple[str, ...]) -> str:
    return readable(next((labels[name] for name in names if name in labels), ""))


def _once(samples: Iterable[Sample], names: Mapping[str, object], problems: list[str]) -> Iterable[Sample]:
    """The samples the table asks for, each series once.

    One series exported twice is one series; where the two differ the larger is the newer (a counter only grows).
    """
    seen: dict[tuple[str, frozenset[tuple[str, str]]], Sample] = {}
    for sample in samples:
        if sample.name not in names:
            continue
        identity = (sample.name, frozenset(sample.labels.items()))
        other = seen.setdefault(identity, sample)
        if other is not sample and other.value != sample.value:
            problems.append(
                f"{sample.name} is told twice, as {other.value:g} and {sample.value:g}: the larger is taken."
            )
            seen[identity] = max(other, sample, key=lambda each: each.value)
    return seen.values()


def _split_histograms(values: dict[Key, int], problems: list[str]) -> dict[Key, int]:
    """Cumulative buckets become the number of observations that fell into each."""
    plain = {key: value for key, value in values.items() if key.metric not in HISTOGRAMS}
    groups: dict[Key, list[tuple[float, Key]]] = defaultdict(list)
    for key in values.keys() - plain.keys():
        try:
            groups[_histogram(key)].append((float(key.detail), key))
        except ValueError:
            problems.append(f"le={key.detail!r} is no bucket bound: it is skipped.")
    for group in groups.values():
        plain.update(_differences(group, values, problems))
    return plain


def _differences(group: list[tuple[float, Key]], values: dict[Key, int], problems: list[str]) -> dict[Key, int]:
    split, below = {}, 0
    for _, key in sorted(group):
        split[key] = values[key] - below
        below = values[key]
    if any(value < 0 for value in split.values()):
        problems.append(f"The histogram of {_WORDS[group[0][1].metric]} is not cumulative: it is skipped this time.")
        return {}
    return split


def _contradictions(counters: Mapping[Key, int]) -> Iterable[str]:
    """More hit than prompt tokens is the engine's error: told, never clamped away."""
    prompt: dict[tuple[str, str], int] = {}
    hits: dict[tuple[str, str], int] = defaultdict(int)
    for key, value in counters.items():
        if key.metric == Metric.PROMPT_TOKENS:
            prompt[key.engine, key.model_name] = value
        elif key.metric == Metric.HIT_TOKENS:
            hits[key.engine, key.model_name] += value
    for model, num_hit in sorted(hits.items()):
        if model not in prompt:
            yield f"{num_hit:,} hit tokens are told without the prompt tokens they are part of: no rate can be given."
        elif num_hit > prompt[model]:
            yield f"{num_hit:,} hit tokens of {prompt[model]:,} prompt tokens are told: it counts something else."
