"""Reads an exposition text, OpenMetrics or text format 0.0.4, into samples. Knows nothing about engines or tiers.

A line that cannot be read costs that line, not the scrape: what was wrong is told beside the samples.
"""

import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache

from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_classic

MAX_BYTES = 16 * 1024 * 1024  # vLLM 0.32 sends 52 KB; 300 times that is another kind of file
MAX_SAMPLES = 200_000
MAX_PROBLEMS = 20
# What the parsers raise for a line that they do not understand, by fuzzing them; a number of 400 digits is no float.
_UNREADABLE = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)


class ExpositionError(ValueError):
    """The text as a whole cannot be used; the message is one sentence for a person."""


@dataclass(frozen=True)
class Sample:
    """One line: `name` is canonical (see `canonical_name`)."""

    name: str
    labels: Mapping[str, str]
    value: float


Read = tuple[list[Sample], list[str], set[str]]  # samples, what was wrong, canonical names that were unreadable


@dataclass(frozen=True)
class Exposition:
    """`at` is when the samples were taken, where somebody else took them; None is now."""

    samples: tuple[Sample, ...]
    problems: tuple[str, ...]
    unreadable: frozenset[str] = frozenset()  # canonical names of lines that could not be read: a part is missing
    at: datetime | None = None

    @cached_property
    def names(self) -> frozenset[str]:
        return self.unreadable.union(sample.name for sample in self.samples)


_NAME = re.compile(r'\s*(?:\{\s*")?([A-Za-z_:][\w:.]*)', re.ASCII)
_ONE_SPELLING = str.maketrans(":.", "__")


@lru_cache(maxsize=4096)
def canonical_name(name: str) -> str:
    """One name for one counter: with or without `_total`, with `:`, `_` or OpenTelemetry's `.`, it is the same.

    Ray's metrics agent puts `ray_` before what a replica tells (ray/util/metrics.py); the fact does not change.
    """
    return name.removeprefix("ray_").removesuffix("_total").translate(_ONE_SPELLING)


def parse(text: str, wanted: Container[str] | None = None) -> Exposition:
    """Every readable sample of `text`, in its order. Raises ExpositionError where it is too large or has none.

    With `wanted`, canonical names, only lines of these are looked at: of vLLM's text that is a seventh of the time. A
    text that has none of them is read as a whole, to say what it is.
    """
    if len(text) > MAX_BYTES:
        raise ExpositionError(f"The metrics text has {len(text):,} characters; at most {MAX_BYTES:,} are read.")
    samples, problems, unreadable = (wanted is not None and _wanted_samples(text, wanted)) or _samples(text)
    if len(samples) > MAX_SAMPLES:
        raise ExpositionError(f"The metrics text has {len(samples):,} samples; at most {MAX_SAMPLES:,} are read.")
    if not samples:
        reason = f": {problems[0]}" if problems else "."
        raise ExpositionError(f"This is not a metrics text: no line could be read as a sample{reason}")
    return Exposition(tuple(samples), tuple(problems), frozenset(unreadable))


def _wanted_samples(text: str, wanted: Container[str]) -> Read | None:
    """None where the text has no line of these."""
    is_openmetrics = text.rstrip().endswith("# EOF")
    lines = [line for line in _lines(text) if (name := _NAME.match(line)) and canonical_name(name[1]) in wanted]
    chosen = "\n".join(map(_without_exemplar, lines) if is_openmetrics else lines) + "\n"
    if not lines:
        return None
    try:
        return list(_families(chosen, is_openmetrics=False)), [], set()
    except _UNREADABLE:
        return _line_by_line(chosen, is_openmetrics=False)


def _lines(text: str) -> list[str]:
    """Only a line feed ends a line (`splitlines` knows ten other characters, which may stand in a label's value)."""
    return [line.removesuffix("\r") for line in text.split("\n")]


def _samples(text: str) -> Read:
    """The whole text at once where it is well-formed; otherwise line by line, so that one bad line costs one line."""
    is_openmetrics = text.rstrip().endswith("# EOF")
    try:
        return list(_families(text, is_openmetrics)), [], set()
    except _UNREADABLE:
        return _line_by_line(text, is_openmetrics)


def _families(text: str, is_openmetrics: bool) -> Iterable[Sample]:
    for family in (parse_openmetrics if is_openmetrics else parse_classic)(text):
        for sample in family.samples:
            yield Sample(canonical_name(sample.name), sample.labels, float(sample.value))


def _line_by_line(text: str, is_openmetrics: bool) -> Read:
    samples: list[Sample] = []
    problems: list[str] = []
    unreadable: set[str] = set()
    for number, line in enumerate(_lines(text), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            samples += _families(_without_exemplar(line) if is_openmetrics else line, is_openmetrics=False)
        except _UNREADABLE:
            if len(problems) < MAX_PROBLEMS:
                problems.append(f"line {number} is not a sample: {line[:80]!r}")
            if len(unreadable) < MAX_SAMPLES and (name := _NAME.match(line)):
                unreadable.add(canonical_name(name[1]))
    return samples, problems, unreadable


def _without_exemplar(line: str) -> str:
    return line.rsplit(" # {", 1)[0]
