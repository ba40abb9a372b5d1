"""Headers that people typed, one a line, and tokens; checked before they are stored or sent. Never repeats a value."""

import re

MAX_HEADERS = 20
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_VALUE = re.compile(r"[\x20-\x7e\xa0-\xff]{1,4096}")
# What the client decides itself, or what would let one request look like two.
_OURS = frozenset({"host", "content-length", "transfer-encoding", "connection", "accept-encoding", "te", "upgrade"})


def parse_headers(text: str) -> dict[str, str]:
    """{"X-Scope-OrgID": "team"} of `Name: value` lines. Raises ValueError with a sentence that names the line only."""
    lines = [line.strip() for line in text.split("\n")]
    headers: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        name, colon, value = (part.strip() for part in line.partition(":"))
        if not (colon and _NAME.fullmatch(name) and _VALUE.fullmatch(value)):
            raise ValueError(f"Line {number} is no header; expected “Name: value”.")
        if name.lower() in _OURS:
            raise ValueError(f"Line {number}: {name} cannot be chosen.")
        headers[name] = value
    if len(headers) > MAX_HEADERS:
        raise ValueError(f"{len(headers)} headers are too many; at most {MAX_HEADERS} are sent.")
    return headers


def check_token(token: str) -> None:
    """Raises ValueError with a sentence."""
    if not token.isascii() or not token.isprintable():
        raise ValueError("A token has printable ASCII characters only.")


def with_token(headers: dict[str, str], token: str) -> dict[str, str]:
    return headers | ({"Authorization": f"Bearer {token}"} if token else {})
