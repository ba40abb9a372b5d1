"""Whose series of a Prometheus are: counters of two engines must not be added up. Asks nothing."""

from collections.abc import Iterable, Mapping

# What tells scraped engines, and copies of their series, apart: a Prometheus or what is in front of it puts them on.
TARGET_LABELS = ("job", "instance", "cluster", "prometheus", "prometheus_replica", "replica")
_SHOWN = 2

Place = tuple[tuple[str, str], ...]


def place_of(labels: Mapping[str, str]) -> Place:
    return tuple((name, labels.get(name, "")) for name in TARGET_LABELS)


def told_apart(places: Iterable[Place], selector: str) -> str:
    """A sentence that names two of them; "" where they are one engine's."""
    targets = sorted(set(places))
    if len(targets) < 2:
        return ""
    shown = " and ".join(_differing(target, targets) for target in targets[:_SHOWN])
    more = " and so on" if len(targets) > _SHOWN else ""
    return (
        f"{len(targets)} engines have series where {{{selector}}}: {shown}{more}. Choose one of them by its labels, or "
        "let a discovery make a source of each."
    )


def _differing(target: Place, targets: list[Place]) -> str:
    differs = [name for number, (name, _) in enumerate(target) if len({each[number][1] for each in targets}) > 1]
    return ", ".join(f'{name}="{value[:60]}"' for name, value in target if name in differs)
