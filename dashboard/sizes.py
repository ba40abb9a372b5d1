"""Bytes as people write them: "2 GiB", "512 MiB", "0". Knows nothing about tiers or forms."""

import bitmath


def parse_size(text: str) -> int:
    """Whole bytes in `text`; a bare number is bytes. Raises ValueError with a sentence for a person."""
    cleaned = text.strip().replace("_", "")
    if cleaned.isascii() and cleaned.isdigit():
        return int(cleaned)
    try:
        size = _parse(cleaned)
    except ValueError:
        raise ValueError(f"“{text}” is not a size; write it like 2 GiB, 512 MiB or 0.") from None
    if size.bytes < 0:
        raise ValueError(f"“{text}” is negative; a size is 0 or more.")
    return int(size.bytes)


def format_size(num_bytes: int) -> str:
    """The shortest exact-looking form: "2 GiB", "1.5 GiB", "0 B"."""
    if num_bytes < 1024:
        return f"{num_bytes} B"
    best = bitmath.Byte(num_bytes).best_prefix(system=bitmath.NIST)
    number = f"{best.value:.2f}".rstrip("0").rstrip(".")
    return f"{number} {best.unit}"


def _parse(text: str) -> bitmath.Bitmath:
    """2 GB is 2·10⁹ and 2 GiB is 2·2³⁰; a lone letter (2G) is read as memory is bought, 2·2³⁰."""
    try:
        return bitmath.parse_string(text)
    except ValueError:
        return bitmath.parse_string_unsafe(text, system=bitmath.NIST)
