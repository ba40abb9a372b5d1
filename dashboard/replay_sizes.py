"""Sizes of a replay's tiers as people write them: "10000" and "10,000 blocks", "2M tokens", "2 GiB". Knows no trace."""

from dataclasses import dataclass

from dashboard.sizes import MAX_BYTES, format_size, parse_size

UNITS = ("blocks", "tokens", "bytes")
# SmolLM2-135M in fp32: keys and values of 30 layers, 3 heads of 64.
DEFAULT_BYTES_A_TOKEN = 46_080
_FACTORS = {"": 1, "k": 1_000, "m": 1_000_000, "g": 1_000_000_000}


@dataclass(frozen=True)
class ReplaySize:
    """So many blocks, tokens or bytes."""

    amount: int
    unit: str

    def blocks(self, block_tokens: int, bytes_a_token: int) -> int:
        """Whole ones."""
        size = {"blocks": 1, "tokens": block_tokens, "bytes": block_tokens * bytes_a_token}[self.unit]
        return self.amount // size

    def in_words(self) -> str:
        if self.unit == "bytes":
            return format_size(self.amount)
        return f"{self.amount:,} {self.unit if self.amount != 1 else self.unit[:-1]}"


def parse_replay_size(text: str) -> ReplaySize:
    """A bare number is blocks, as in `manage.py whatif`. Raises ValueError with a sentence for a person."""
    number, unit = _split(text)
    if unit in ("block", "blocks", "token", "tokens") or (not unit and number.isdecimal()):
        return ReplaySize(_count(text, number), "tokens" if unit.startswith("token") else "blocks")
    try:
        return ReplaySize(parse_size(text), "bytes")
    except ValueError:
        raise _wrong(text) from None


def _split(text: str) -> tuple[str, str]:
    """ "2M tokens" → "2m", "tokens" """
    plain = text.strip().lower().replace(",", "").replace("_", "")
    head, _, tail = plain.rpartition(" ")
    return (head.strip(), tail) if head else (plain, "")


def _count(text: str, number: str) -> int:
    digits, factor = (number[:-1], number[-1]) if number[-1:] in ("k", "m", "g") else (number, "")
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > 18:
        raise _wrong(text)
    count = int(digits) * _FACTORS[factor]
    if count > MAX_BYTES:
        raise _wrong(text)
    return count


def _wrong(text: str) -> ValueError:
    return ValueError(f"“{text[:40]}” is no size of a tier; write it like 10000 (blocks), 2M tokens, 2 GiB or 0.")
