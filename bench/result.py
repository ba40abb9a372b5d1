"""What a benchmark says: our figure, the peer's or limit's from the same run, their ratio and the bar it must meet.

Knows nothing about how anything was measured.
"""

import json
from dataclasses import asdict, dataclass
from typing import Literal


@dataclass(frozen=True)
class Result:
    """One figure. `ratio` is ours / reference; `ok` is None where the reference is absent: never a pass."""

    name: str
    ours: float
    reference: float | None
    reference_name: str
    unit: str
    ratio: float | None
    bar: str
    ok: bool | None

    def as_json(self) -> str:
        return json.dumps(asdict(self))


def compare(
    name: str,
    *,
    ours: float,
    reference: float | None,
    reference_name: str,
    unit: str,
    bar: float,
    better: Literal["lower", "higher"],
) -> Result:
    """A Result whose ratio ours / reference must be ≤ `bar` (lower is better) or ≥ `bar` (higher is better)."""
    sign = "≤" if better == "lower" else "≥"
    if not reference:
        return Result(name, ours, None, reference_name, unit, None, f"{sign} {bar:g}", None)
    ratio = ours / reference
    ok = ratio <= bar if better == "lower" else ratio >= bar
    return Result(name, ours, reference, reference_name, unit, ratio, f"{sign} {bar:g}", ok)
