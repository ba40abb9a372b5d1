"""How one number differs from another, in words: how much, which way, and whether that is better. Draws nothing.

`against` is what it is compared with, as "than in the hour before".
"""

from typing import Literal

Better = Literal["more", "less", ""]
Difference = dict[str, str]  # "direction", "verdict", "amount", "text"


def points(now: float | None, then: float | None, against: str, better: Better = "more") -> Difference:
    """The change of a rate, in percentage points: a relative change of a percentage misleads."""
    if now is None or then is None:
        return _no_change(now, then, against)
    difference = round((now - then) * 100, 1)
    return _words(difference, f"{abs(difference):.1f} points", against, better, ("higher", "lower"))


def relative(
    now: float | None, then: float | None, against: str, better: Better, words_for: tuple[str, str] = ("more", "fewer")
) -> Difference:
    """The change of an amount, in per cent of what it was, or as a multiple."""
    if now is None or not then:
        return _no_change(now, then, against)
    ratio = now / then
    text = f"{ratio:.3g} ×" if ratio >= 3 else f"{abs(ratio - 1) * 100:.0f} %"
    if ratio >= 3 and not better:
        return {"direction": "up", "verdict": "neutral", "amount": f"▲ {text}", "text": f"as many as {against[5:]}"}
    return _words(0 if text == "0 %" else ratio - 1, text, against, better, words_for)


def _words(difference: float, amount: str, against: str, better: Better, sides: tuple[str, str]) -> Difference:
    if difference == 0:
        return {"direction": "flat", "verdict": "neutral", "amount": "", "text": f"as {against[5:]}"}
    is_up = difference > 0
    verdict = "neutral" if not better else ("better" if is_up == (better == "more") else "worse")
    arrow = "▲" if is_up else "▼"
    text = f"{sides[0] if is_up else sides[1]} {against}"
    return {"direction": "up" if is_up else "down", "verdict": verdict, "amount": f"{arrow} {amount}", "text": text}


def _no_change(now: float | None, then: float | None, against: str) -> Difference:
    text = f"none {against[5:]}" if now and then is not None else ""
    return {"direction": "flat", "verdict": "neutral", "amount": "", "text": text}
