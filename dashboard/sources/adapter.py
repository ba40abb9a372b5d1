"""Turns samples into canonical counters and gauges by a table. Knows no engine: every name lives in tables.py."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from dashboard.models import CacheTier, Series
from dashboard.sources.exposition import Exposition, ExpositionError, Sample

Metric = Series.Metric
HIT_TIERS = tuple(CacheTier.values)
MAX_SERIES = 5_000  # an engine has about a hundred a model; a label that never repeats would fill the database
_LARGEST = 2**62  # a 64-bit column holds it, and twice it
_WORDS = {Metric.TTFT.value: "time to first token", Metric.LOAD_TIMES.value: "load times"}
HISTOGRAMS = frozenset(_WORDS)
_GAUGES = frozenset(
    {Metric.RESIDENT_TOKENS, Metric.CAPACITY_TOKENS, Metric.USED_BYTES, Metric.CAPACITY_BYTES, Metric.UP}
)


@dataclass(frozen=True)
class TierLabel:
    """Which tier a label's value means; a value that the table does not know is not guessed."""

    label: str
    tiers: Mapping[str, str]
    default: str = CacheTier.UNATTRIBUTED

    def tier(self, labels: Mapping[str, str]) -> str:
        return self.tiers.get(labels.get(self.label, ""), self.default)


@dataclass(frozen=True)
class FixedTier:
    """The name alone tells the tier; "" where the fact has none."""

    name: str = ""

    def tier(self, labels: Mapping[str, str]) -> str:
        return self.name


@dataclass(frozen=True)
class Rule:
    """Samples called `name` (canonical) with the labels `where` add up to `metric`, by engine, model, tier, detail.

    What is stored is the sample times `scale`, as an integer.
    """

    name: str
    metric: Metric
    tier: TierLabel | FixedTier = FixedTier()
    detail_label: str = ""
    where: tuple[tuple[str, str], ...] = ()
    scale: int = 1

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(labels.get(name) == value for name, value in self.where)


@dataclass(frozen=True)
class Adapter:
    """One kind of engine. Its computed tokens are "told", "derived" (prompt − Σ hits) or "unknown"."""

    kind: str
    marks: tuple[str, ...]  # canonical names (a trailing * is a prefix); any of them tells this kind
    rules: tuple[Rule, ...]
    computed: str = "derived"
    engine_labels: tuple[str, ...] = ("engine",)
    model_labels: tuple[str, ...] = ("model_name",)
    note: str = ""


@dataclass(frozen=True, order=True)
class Key:
    engine: str
    model_name: str
    metric: str
    cache_tier: str = ""
    detail: str = ""


@dataclass(frozen=True)
class Adapted:
    """What one text says, canonically. Histogram counters are per `le`, not cumulative."""

    kind: str
    computed: str
    counters: Mapping[Key, int]
    gauges: Mapping[Key, int]
    problems: tuple[str, ...] = ()
    note: str = ""

    @property
    def models(self) -> list[tuple[str, str]]:
        """(engine, model_name) of everything seen, sorted."""
        return sorted({(key.engine, key.model_name) for key in (*self.counters, *self.gauges)})


@dataclass
class _Sums:
    """Sums while samples are read. One unreadable child spoils its sum: part of a counter would look like a restart."""

    values: dict[Key, float] = field(default_factory=lambda: defaultdict(float))
    spoiled: set[Key] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)

    def add(self, key: Key, sample: Sample, scale: int) -> None:
        if not (math.isfinite(sample.value) and 0 <= sample.value * scale <= _LARGEST):
            self.spoiled.add(key)
            self.problems.append(
                f"{sample.name} is {sample.value}, which is no count: {key.metric} is skipped this time."
            )
        else:
            self.values[key] += sample.value * scale

    def whole(self) -> dict[Key, int]:
        """The sums that can be trusted. A histogram without one of its buckets would move counts to its neighbour."""
        histograms = {_histogram(key) for key in self.spoiled if key.metric in HISTOGRAMS}
        return {
            key: round(value)
            for key, value in self.values.items()
            if key not in self.spoiled and _histogram(key) not in histograms
        }


def _histogram(key: Key) -> Key:
    return replace(key, detail="")


def adapt(exposition: Exposition, adapter: Adapter) -> Adapted:
    """The canonical counters and gauges of one text. Odd numbers never raise: they are told in `problems`.

    Raises ExpositionError for a text with more series than any engine has.
    """
    sums = _Sums(problems=list(exposition.problems))
    rules: dict[str, list[Rule]] = defaultdict(list)
    for rule in adapter.rules:
        rules[rule.name].append(rule)
    for sample in _once(exposition.samples, rules, sums.problems):
        for rule in rules[sample.name]:
            if rule.matches(sample.labels):
                sums.add(_key(adapter, rule, sample.labels), sample, rule.scale)
    if len(sums.values) > MAX_SERIES:
        raise ExpositionError(f"The engine tells {len(sums.values):,} series; at most {MAX_SERIES:,} are recorded.")
    values = _split_histograms(sums.whole(), sums.problems)
    counters = {key: value for key, value in values.items() if key.metric not in _GAUGES}
    gauges = {key: value for key, value in values.items() if key.metric in _GAUGES}
    sums.problems.extend(_contradictions(counters))
    return Adapted(adapter.kind, _computed(adapter, counters), counters, gauges, tuple(sums.problems), adapter.note)


def _computed(adapter: Adapter, counters: Mapping[Key, int]) -> str:
    """A build that should tell computed tokens and does not still tells what they follow from."""
    is_told = any(key.metric == Metric.COMPUTED_TOKENS for key in counters)
    return "derived" if adapter.computed == "told" and not is_told else adapter.computed


def _key(adapter: Adapter, rule: Rule, labels: Mapping[str, str]) -> Key:
    return Key(
        engine=_first(labels, adapter.engine_labels),
        model_name=_first(labels, adapter.model_labels),
        metric=rule.metric.value,
        cache_tier=rule.tier.tier(labels),
        detail=_detail(rule, labels),
    )


def _detail(rule: Rule, labels: Mapping[str, str]) -> str:
    """A bucket's bound in one spelling: "1", "1.0" and "1e0" are the same."""
    value = _clean(labels.get(rule.detail_label, ""))
    if rule.metric in HISTOGRAMS:
        with suppress(ValueError):
            return "+Inf" if math.isinf(float(value)) else f"{float(value):g}"
    return value[:32]


def _clean(value: str) -> str:
    return value.replace("\x00", "")  # PostgreSQL's text has no place for it


def _first(labels: Mapping[str, str], names: tuple[str, ...]) -> str:
    return _clean(next((labels[name] for name in names if name in labels), ""))


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
