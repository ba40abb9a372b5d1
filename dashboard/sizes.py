"""Bytes as people write them: "2 GiB", "512 MiB", "0". Knows nothing about tiers or forms."""

import re
from fractions import Fraction

MAX_BYTES = 2**63 - 1  # what a database integer and a file offset can hold
_MAX_CHARACTERS = 64

_LETTERS = "kmgtpe"
_UNITS = {"": 1, "b": 1, "byte": 1, "bytes": 1}
for _power, _letter in enumerate(_LETTERS, start=1):
    _UNITS |= {_letter: 1024**_power, f"{_letter}i": 1024**_power, f"{_letter}ib": 1024**_power}
    _UNITS[f"{_letter}b"] = 1000**_power
_SIZE = re.compile(r"(-?)\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([a-z]*)", re.ASCII)


def parse_size(text: str) -> int:
    """Whole bytes in `text`; a bare number is bytes. Raises ValueError with a sentence for a person.

    Case never matters and b is bytes (nobody buys memory in bits). 2 GB is 2·10⁹, 2 GiB is 2·2³⁰; a lone letter (2G) is
    read as memory is bought, 2·2³⁰.
    """
    shown = text if len(text) <= _MAX_CHARACTERS else f"{text[:_MAX_CHARACTERS]}…"
    match = _SIZE.fullmatch(text.strip().replace("_", "").lower()) if shown == text else None
    if match is None or match[3] not in _UNITS:
        raise ValueError(f"“{shown}” is not a size; write it like 2 GiB, 512 MiB or 0.")
    num_bytes = int(Fraction(match[2]) * _UNITS[match[3]])  # fractions: no float may round a byte away
    if match[1] and num_bytes:
        raise ValueError(f"“{shown}” is negative; a size is 0 or more.")
    if num_bytes > MAX_BYTES:
        raise ValueError(f"“{shown}” is too large; a size is less than 8 EiB.")
    return num_bytes


def format_size(num_bytes: int) -> str:
    """A short form for reading, rounded to two decimals: "2 GiB", "1.5 GiB", "0 B"."""
    power = min(max(num_bytes.bit_length() - 1, 0) // 10, len(_LETTERS))
    number = f"{num_bytes / 1024**power:.2f}".rstrip("0").rstrip(".") if power else str(num_bytes)
    if number == "1024" and power < len(_LETTERS):
        number, power = "1", power + 1
    return f"{number} {_LETTERS[power - 1].upper()}iB" if power else f"{number} B"


def exact_size(num_bytes: int) -> str:
    """A form that `parse_size` reads back as the very same number: "1.5 GiB", "97920 KiB", "1073741825 B"."""
    short = format_size(num_bytes)
    try:
        if parse_size(short) == num_bytes:
            return short
    except ValueError:  # rounded up to a size that no integer holds
        pass
    num_zero_bits = (num_bytes & -num_bytes).bit_length() - 1
    power = min(num_zero_bits // 10, len(_LETTERS))
    unit = f"{_LETTERS[power - 1].upper()}iB" if power else "B"
    return f"{num_bytes >> 10 * power} {unit}"
