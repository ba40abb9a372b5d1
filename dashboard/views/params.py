"""What a page's address asks for: a period, an engine, a model. Knows nothing about what is stored.

`range=1h` means the hour up to now; `start` and `end` (ISO 8601 with a zone, or Unix seconds) mean that stretch.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from dashboard.selectors.period import MAX_SECONDS

RANGES = {"5m": 300, "15m": 900, "1h": 3_600, "6h": 21_600, "24h": 86_400, "7d": 604_800, "30d": 2_592_000}
RANGE_WORDS = {
    "5m": "5 min",
    "15m": "15 min",
    "1h": "1 h",
    "6h": "6 h",
    "24h": "24 h",
    "7d": "7 days",
    "30d": "30 days",
}
DEFAULT_RANGE = "15m"
NEWCOMERS_RANGE = "5m"
_SHORTEST_SECONDS = 60
_LONGEST_NAME = 200


class BadParameterError(ValueError):
    """The address asks for something that cannot be; the text is a sentence for a person."""


@dataclass(frozen=True)
class Query:
    """A period in Unix seconds (`range_name` is empty for a custom one); None means every engine, model, tenant."""

    start: int
    end: int
    range_name: str
    engine: str | None
    model_name: str | None
    tenant: str | None = None


def read_query(params: Mapping[str, str], now: float, *, ends: tuple[str, str] = ("start", "end")) -> Query:
    """`ends` are the names of a custom period's two moments. Raises BadParameterError."""
    names = [read_name(params, name) for name in ("engine", "model", "tenant")]
    if any(params.get(name) for name in ends):
        start, end = _custom(params, now, *ends)
        return Query(start, end, "", *names)
    name = params.get("range") or DEFAULT_RANGE
    if name not in RANGES:
        raise BadParameterError(f"range is “{name[:40]}”, but it has to be one of {', '.join(RANGES)}.")
    return Query(int(now) - RANGES[name], int(now), name, *names)


def page_number(params: Mapping[str, str]) -> int:
    """`page` of a list in the address, from 1; what is no number means the first."""
    text = params.get("page") or ""
    return max(int(text), 1) if text.isascii() and text.isdigit() and len(text) < 10 else 1


def _custom(params: Mapping[str, str], now: float, first: str, last: str) -> tuple[int, int]:
    if not (params.get(first) and params.get(last)):
        raise BadParameterError(f"{first} and {last} belong together: give both, or a range.")
    start, end = read_moment(first, params[first]), min(read_moment(last, params[last]), int(now))
    if start > now:
        raise BadParameterError(f"{first} lies in the future, where nothing has been counted yet.")
    if end - start < _SHORTEST_SECONDS:
        raise BadParameterError(f"{last} has to be at least one minute after {first}.")
    if end - start > MAX_SECONDS:
        raise BadParameterError(
            f"{first} and {last} are more than 20 years apart, which is the longest period that can be shown."
        )
    return start, end


def read_moment(name: str, text: str) -> int:
    """Unix seconds. Raises BadParameterError."""
    if text.isascii() and text.isdigit() and len(text) <= 11:
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
        return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        raise BadParameterError(f"{name} is “{text[:40]}”, but it has to be a time like 2026-01-31T12:00Z.") from None


def read_name(params: Mapping[str, str], name: str) -> str | None:
    """None for all of them. Raises BadParameterError."""
    text = params.get(name) or ""
    if len(text) > _LONGEST_NAME or not text.isprintable():
        raise BadParameterError(f"{name} is not a name: at most {_LONGEST_NAME} printable characters.")
    return text or None
