"""Makes a table of a mapping that an admin typed, as if it were one of ours. Knows no database."""

import re
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Protocol

from dashboard.sources.exposition import canonical_name
from dashboard.sources.rules import Adapter, FixedTier, Metric, Rule

KIND = "mapping"
MAX_ROWS = 100
TIERED = frozenset(
    {
        Metric.HIT_TOKENS.value,
        Metric.RESIDENT_TOKENS.value,
        Metric.CAPACITY_TOKENS.value,
        Metric.USED_BYTES.value,
        Metric.CAPACITY_BYTES.value,
    }
)
_NAME = re.compile(r"[A-Za-z_:][A-Za-z0-9_:.]*")


class Row(Protocol):
    name: str
    label: str
    value: str
    means: str
    cache_tier: str


def row_problem(row: Row) -> str:
    """What is wrong with one row, in a sentence; "" where nothing is."""
    if not _NAME.fullmatch(row.name):
        return f"“{row.name}” is no name of a metric; expected letters, digits, underscores and colons."
    if bool(row.label) != bool(row.value):
        return "A label needs its value, and a value its label; leave both empty to read all samples of the metric."
    if row.means in TIERED and not row.cache_tier:
        return "Say of which tier; “Unattributed” where the metric does not tell."
    if row.means not in TIERED and row.cache_tier:
        return "These tokens are of no tier; leave the tier empty."
    return ""


def overlaps(rows: Sequence[Row]) -> Iterable[str]:
    """A sentence for each two rows that would count the same samples twice."""
    for one, other in combinations(rows, 2):
        same = canonical_name(one.name) == canonical_name(other.name) and one.means == other.means
        if same and (one.label != other.label or one.value == other.value):
            yield f"Two rows may read the same samples of {one.name} as {one.means}: they would count twice."


def adapter_of(
    rows: Iterable[Row], *, engine_label: str = "engine", model_label: str = "model_name", is_complete: bool = False
) -> Adapter:
    """The table that these rows are. Computed tokens are derived only where all hits are told."""
    rules = tuple(_rule(row) for row in rows)
    tells_computed = any(rule.metric == Metric.COMPUTED_TOKENS for rule in rules)
    return Adapter(
        kind=KIND,
        marks=tuple({rule.name for rule in rules}),
        rules=rules,
        computed="derived" if is_complete and not tells_computed else "told" if tells_computed else "unknown",
        engine_labels=(engine_label,) if engine_label else (),
        model_labels=(model_label,) if model_label else (),
    )


def _rule(row: Row) -> Rule:
    return Rule(
        canonical_name(row.name),
        Metric(row.means),
        FixedTier(row.cache_tier),
        where=((row.label, row.value),) if row.label else (),
    )
