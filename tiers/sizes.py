"""Bytes in sentences for people. Knows nothing about tiers; what people type is read in dashboard/sizes.py."""

_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def in_words(num_bytes: int) -> str:
    """ "1.5 GiB (1,610,612,736 bytes)", "128 bytes": rounded to two decimals, and exactly."""
    exactly = f"{num_bytes:,} bytes" if num_bytes != 1 else "1 byte"
    power = min((abs(num_bytes).bit_length() - 1) // 10, len(_UNITS))
    if power < 1:
        return exactly
    return f"{num_bytes / 1024**power:.2f}".rstrip("0").rstrip(".") + f" {_UNITS[power - 1]} ({exactly})"
