"""Fetches a text over HTTP: with timeouts, size limits before and after decompression, and no redirects.

Knows nothing of what is in it. What goes wrong is one sentence, and never repeats a header that was sent.
"""

import re
import ssl
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from urllib.parse import urlsplit

import httpx

from dashboard.sources.exposition import MAX_BYTES
from dashboard.sources.target import Target, Tls

TIMEOUT = httpx.Timeout(5.0, connect=3.0)
TOTAL_SECONDS = 10.0  # a server that trickles a byte at a time never meets the read timeout
METRICS = "application/openmetrics-text;version=1.0.0;q=0.9,text/plain;version=0.0.4;q=0.8,*/*;q=0.1"
_PIECE = 64 * 1024
_NUMBER = re.compile(r"\[Errno -?\d+\] ?")


class ScrapeError(Exception):
    """The text could not be fetched; the message is one sentence for a person."""


def fetch(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    tls: Tls | None = None,
    accept: str = METRICS,
    transport: httpx.BaseTransport | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> str:
    """The text at `url`. Raises ScrapeError."""
    host = _host(url)
    sent = {"Accept": accept, "Accept-Encoding": "gzip", "User-Agent": "tierscope", **(headers or {})}
    try:
        with (
            httpx.Client(
                timeout=TIMEOUT, follow_redirects=False, transport=transport, trust_env=False, verify=_context(url, tls)
            ) as client,
            client.stream("GET", url, headers=sent) as response,
        ):
            _check_status(response, host)
            return _bounded(response, host, clock() + TOTAL_SECONDS, clock)
    except httpx.TimeoutException:
        raise ScrapeError(f"{host} did not answer within {TIMEOUT.read:g} s.") from None
    except (httpx.HTTPError, httpx.InvalidURL, zlib.error) as error:
        raise ScrapeError(f"{host} could not be read: {_reason(error)}.") from None
    except (UnicodeError, ValueError) as error:
        raise ScrapeError(f"{host} could not be asked: {type(error).__name__}; is a header odd?") from None


def fetch_target(target: Target) -> str:
    """The text of one watched engine. Raises ScrapeError."""
    return fetch(target.url, headers=target.headers, tls=target.tls)


def _context(url: str, tls: Tls | None) -> ssl.SSLContext:
    """Certificates are checked against the system's authorities, or those of the source's own PEM text."""
    return _tls_context(tls or Tls()) if url.lower().startswith("https:") else _NO_TLS


_NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # trusts nobody


@lru_cache(maxsize=64)  # reading the system's authorities takes 20 ms, more than all else of a scrape
def _tls_context(tls: Tls) -> ssl.SSLContext:
    if not (tls.ca or tls.is_unchecked):
        return httpx.create_ssl_context(trust_env=False)
    context = ssl.create_default_context(cadata=tls.ca or None)
    if tls.is_unchecked:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _reason(error: Exception) -> str:
    """Without the system's number for it: "[Errno 111] Connection refused" says nothing more."""
    return _NUMBER.sub("", str(error)).rstrip(".") or type(error).__name__


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or url
    except ValueError:
        raise ScrapeError(f"{url} could not be read: it is no address.") from None


def _check_status(response: httpx.Response, host: str) -> None:
    if response.is_redirect:
        raise ScrapeError(f"{host} answered with a redirect; give the address of the text itself.")
    if response.status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
        raise ScrapeError(f"{host} answered {response.status_code}; expected 200: it wants another token or header.")
    if response.status_code != httpx.codes.OK:
        raise ScrapeError(f"{host} answered {response.status_code}; expected 200 and a text.")


def _bounded(response: httpx.Response, host: str, deadline: float, clock: Callable[[], float]) -> str:
    received = bytearray()
    for piece in _decoded(response, host):
        received += piece
        if len(received) > MAX_BYTES:
            raise ScrapeError(f"{host} sent more than {MAX_BYTES // 2**20} MiB, the most that is read.")
        if clock() > deadline:
            raise ScrapeError(f"{host} was still sending after {TOTAL_SECONDS:g} s.")
    return received.decode("utf-8", errors="replace")


def _decoded(response: httpx.Response, host: str) -> Iterable[bytes]:
    """Unpacked in pieces: a few kilobytes can hold gigabytes, and must not before anybody counts."""
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding in ("", "identity"):
        yield from response.iter_raw(_PIECE)
        return
    if encoding not in ("gzip", "x-gzip"):
        raise ScrapeError(f"{host} answered packed as {encoding[:40]}; expected gzip or plain text.")
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    for packed in response.iter_raw(_PIECE):
        rest = packed
        while rest:
            yield unpacker.decompress(rest, _PIECE)
            rest = unpacker.unconsumed_tail
    yield unpacker.flush()
    if not unpacker.eof:
        raise ScrapeError(f"{host} could not be read: the packed answer ends before its end.")
