"""Whether an address can be read at all: what could only fail is refused where it is typed. Asks nobody."""

import re
from urllib.parse import urlsplit

import httpx

# Underscores: containers are called so. An address of IPv6 is checked by the client that will ask it.
_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_HOST = re.compile(rf"{_LABEL}(?:\.{_LABEL})*\.?", re.ASCII)
_MAX_HOST = 253  # RFC 1035
_MAX_PORT = 65_535


def address_problem(url: str) -> str:
    """What is wrong with an http(s) address, in a sentence; "" where nothing is."""
    if any(letter.isspace() or not letter.isprintable() for letter in url):
        return "The address has a space, a tab or an unprintable character in it."
    try:
        parts, asked = urlsplit(url), httpx.URL(url)
        port = parts.port
    except (ValueError, httpx.InvalidURL):
        return "Enter an address, like http://gpu-7:8000/metrics: of this the host or the port cannot be read."
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return "Enter an address, like http://gpu-7:8000/metrics."
    if "@" in parts.netloc:
        return "Leave the user name and password out of the address: it is shown on pages."
    if port is not None and not 0 < port <= _MAX_PORT:
        return f"Port {port} is none; expected 1 to {_MAX_PORT}."
    host = asked.raw_host.decode("ascii")
    if ":" not in host and (len(host) > _MAX_HOST or not _HOST.fullmatch(host)):
        return "The address has no host that can be asked; expected a name or a number, like gpu-7 or 10.0.0.7."
    return ""
