"""What has to be known to read one watched engine. Knows neither HTTP nor the database."""

from dataclasses import dataclass

from dashboard.sources.rules import Adapter


@dataclass(frozen=True)
class Target:
    """An address and how its text is read. `typed` is the table of a mapping, for that kind only."""

    url: str
    kind: str
    typed: Adapter | None = None
