"""How much a tier's size changed, in a form that cannot be overlooked. Knows nothing about who changed it."""

from fractions import Fraction

from dashboard.sizes import parse_size

# Most changes double or halve; ten times is a forgotten unit or a decision that somebody wants to hear of.
LARGE = 10


def factor(old_value: str, new_value: str) -> str:
    """ "× 2", "÷ 1,048,576", "switched off"; large ones with an arrow: "▼ ÷ 1,048,576". Empty for what is no size."""
    try:
        before, after = parse_size(old_value), parse_size(new_value)
    except ValueError:
        return ""
    if before == after:
        return ""
    if not after:
        return "▼ switched off"
    if not before:
        return "▲ switched on"
    ratio = Fraction(max(before, after), min(before, after))
    arrow = "" if ratio < LARGE else "▲ " if after > before else "▼ "
    return f"{arrow}{'×' if after > before else '÷'} {_number(ratio)}"


def large_factor(old_value: str, new_value: str) -> str:
    """`factor`, where nobody should overlook it; else empty."""
    by = factor(old_value, new_value)
    return by if by.startswith(("▲", "▼")) else ""


def is_large_shrink(before_bytes: int, after_bytes: int) -> bool:
    """Whether most of what the tier holds would be dropped."""
    return before_bytes > LARGE * after_bytes


def _number(ratio: Fraction) -> str:
    return f"{float(ratio):.3g}" if ratio < LARGE else f"{round(ratio):,}"
