"""Numbers and spans as a person reads them. Knows nothing about where they come from."""

_SPANS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


def count(number: int) -> str:
    """To the token up to ten million; beyond that three digits, since nobody reads more."""
    if number < 10_000_000:
        return f"{number:,}"
    for factor, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if number >= factor:
            return f"{number / factor:.3g} {unit}" if number < 999.5 * factor else f"{number / factor:,.0f} {unit}"
    raise AssertionError(number)


def percent(share: float | None) -> str:
    """One digit after the point; a share that is nearly all or nearly nothing never reads as all or nothing."""
    if share is None:
        return "–"
    if 0 < share < 0.0005:
        return "< 0.1 %"
    if 0.9995 <= share < 1:
        return "> 99.9 %"
    return f"{share * 100:.1f} %"


def duration(seconds: float | None) -> str:
    """Three digits: 83.4 ms, 1.24 s, 112 s."""
    if seconds is None:
        return "–"
    if seconds < 0.9995:
        return f"{seconds * 1000:.3g} ms"
    return f"{seconds:.3g} s" if seconds < 999.5 else f"{seconds:,.0f} s"


def span(seconds: int) -> str:
    """The largest unit that fits evenly, or the nearest: 5 minutes, 1 hour, 30 days."""
    for size, unit in _SPANS:
        if seconds >= size and (seconds % size == 0 or seconds >= 10 * size):
            return counted(round(seconds / size), unit)
    for size, unit in _SPANS:
        if seconds >= size:
            return counted(round(seconds / size), unit)
    return "0 seconds"


def ago(seconds: float) -> str:
    """How long ago, as precisely as it matters: 12 seconds ago, 3 minutes ago."""
    for size, unit in _SPANS:
        if seconds >= 2 * size or size == 1:
            return f"{counted(int(max(seconds, 0) // size), unit)} ago"
    raise AssertionError(seconds)


def counted(number: int, unit: str) -> str:
    """1 block, 2 blocks, 12,345 blocks."""
    return f"{number} {unit}" if number == 1 else f"{number:,} {unit}s"
