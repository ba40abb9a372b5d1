"""Variables that list names by commas: hosts, origins, proxies, an address. Knows no variable and no setting."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_network
from urllib.parse import urlsplit

_HOST = re.compile(r"\*|\.?[\w-]+(\.[\w-]+)*\.?|\[[0-9a-fA-F:.]+\]")
_SHOWN = 60


@dataclass(frozen=True)
class Kind:
    is_right: Callable[[str], bool]
    expected: str

    def one(self, text: str) -> str:
        """The text. Raises ValueError with what was expected."""
        if not self.is_right(text):
            raise ValueError(f"“{text[:_SHOWN]}”. {self.expected}")
        return text

    def all(self, text: str) -> list[str]:
        """What stands between commas; none where the text is empty."""
        return [self.one(part.strip()) for part in text.split(",")] if text else []


def _is_origin(text: str) -> bool:
    """A scheme and a host, where Django lets the first label be *; no path, which browsers never send."""
    scheme, _, rest = text.partition("://")
    return _is_address(f"{scheme}://{rest.removeprefix('*.')}") and "/" not in rest


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        is_port = parts.port != 0
    except ValueError:
        return False
    is_plain = not (parts.query or parts.fragment or parts.username) and not re.search(r"\s", text)
    return parts.scheme in ("http", "https") and bool(parts.hostname) and is_port and is_plain


def _is_network(text: str) -> bool:
    try:
        return bool(ip_network(text))
    except ValueError:
        return False


ALLOWED_HOST = Kind(
    lambda text: bool(_HOST.fullmatch(text)),
    "Expected host names by commas, without scheme or port: tierscope.example.",
)
TRUSTED_ORIGIN = Kind(_is_origin, "Expected origins by commas: https://tierscope.example.")
PROXY = Kind(_is_network, "Expected addresses or networks by commas: 10.0.0.7,192.168.0.0/16.")
API_ADDRESS = Kind(lambda text: _is_address(text) and "," not in text, "Expected one address: http://web:8000.")
