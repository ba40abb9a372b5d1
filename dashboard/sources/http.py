"""Fetches a text over HTTP, or posts one: within a time for all of it, size limits before and after decompression, and
no redirects.

Knows nothing of what is in it. What goes wrong is one sentence, and never repeats a header that was sent.
"""

import asyncio
import json
import os
import re
import ssl
import zlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from errno import errorcode
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import httpx

from dashboard.sources.exposition import MAX_BYTES
from dashboard.sources.target import Target, Tls

TIMEOUT = httpx.Timeout(5.0, connect=3.0)
# A server that trickles its name, its certificate, headers or text never meets the read timeout.
TOTAL_SECONDS = 10.0
METRICS = "application/openmetrics-text;version=1.0.0;q=0.9,text/plain;version=0.0.4;q=0.8,*/*;q=0.1"
_SENT = {"Accept-Encoding": "gzip", "User-Agent": "tierscope"}
_PIECE = 64 * 1024
_NUMBER = re.compile(r"\[Errno -?\d+\] ?")


class ScrapeError(Exception):
    """The text could not be fetched; the message is one sentence for a person."""


def fetch(url: str, *, headers: Mapping[str, str] | None = None, tls: Tls | None = None, accept: str = METRICS) -> str:
    """The text at `url`, within TOTAL_SECONDS. Raises ScrapeError. Not to be called where an event loop runs."""
    return _asked(_Request("GET", url, _host(url), {"Accept": accept, **_SENT, **(headers or {})}, _context(url, tls)))


def post_json(url: str, told: Mapping[str, Any], *, headers: Mapping[str, str], tls: Tls) -> None:
    """Posts it, within TOTAL_SECONDS; any 2xx is well. Raises ScrapeError. As `fetch`, not where an event loop runs."""
    sent = {"Content-Type": "application/json", **_SENT, **headers}
    _asked(_Request("POST", url, _host(url), sent, _context(url, tls), json.dumps(told).encode()))


@dataclass(frozen=True)
class _Request:
    method: str
    url: str
    host: str
    headers: Mapping[str, str] = field(repr=False)
    context: ssl.SSLContext
    content: bytes | None = None


def _asked(request: _Request) -> str:
    host = request.host
    try:
        with asyncio.Runner(loop_factory=_Loop) as runner:
            return runner.run(_answered(request))
    except TimeoutError:
        raise ScrapeError(f"{host} was still answering after {TOTAL_SECONDS:g} s.") from None
    except httpx.TimeoutException as error:
        seconds = TIMEOUT.connect if isinstance(error, httpx.ConnectTimeout) else TIMEOUT.read
        raise ScrapeError(f"{host} did not answer within {seconds:g} s.") from None
    except httpx.LocalProtocolError:  # its words would repeat the header
        raise ScrapeError(f"{host} could not be asked; is a header odd?") from None
    except (httpx.HTTPError, httpx.InvalidURL, zlib.error) as error:
        raise ScrapeError(f"{host} could not be read: {_reason(error)}.") from None
    except (UnicodeError, ValueError) as error:
        raise ScrapeError(f"{host} could not be asked: {type(error).__name__}; is a header odd?") from None


async def _answered(request: _Request) -> str:
    """Of what can wait, only an event loop ends all of it at one moment: names, TLS, headers, 1xx answers, the text."""
    async with (
        asyncio.timeout(TOTAL_SECONDS),
        httpx.AsyncClient(timeout=TIMEOUT, follow_redirects=False, trust_env=False, verify=request.context) as client,
        client.stream(request.method, request.url, headers=request.headers, content=request.content) as response,
    ):
        if request.content is not None:
            _check_taken(response, request.host)
            return ""  # nobody reads what a receiver says
        _check_status(response, request.host)
        return await _bounded(response, request.host)


class _Loop(asyncio.SelectorEventLoop):
    """Names are looked up in a thread. A look-up cannot be ended, and nobody waits for one that was given up."""

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # noqa: ASYNC109  asyncio's own
        """Left to `close`, which does not wait."""


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


def _reason(error: BaseException) -> str:
    """The innermost cause has the words: "Connection refused", where the outer ones say that no attempt went well.

    Without the system's number for it, which says nothing more.
    """
    while cause := error.__cause__ or error.__context__:
        error = cause
    if isinstance(error, OSError) and error.errno and error.errno in errorcode and not isinstance(error, ssl.SSLError):
        return os.strerror(error.errno)
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


def _check_taken(response: httpx.Response, host: str) -> None:
    if response.is_redirect:
        raise ScrapeError(f"{host} answered with a redirect; give the address that takes alerts itself.")
    if not response.is_success:
        raise ScrapeError(f"{host} answered {response.status_code}; expected 200 or another 2xx.")


async def _bounded(response: httpx.Response, host: str) -> str:
    received = bytearray()
    async for piece in _decoded(response, host):
        received += piece
        if len(received) > MAX_BYTES:
            raise ScrapeError(f"{host} sent more than {MAX_BYTES // 2**20} MiB, the most that is read.")
    return received.decode("utf-8", errors="replace")


async def _decoded(response: httpx.Response, host: str) -> AsyncIterator[bytes]:
    """Unpacked in pieces: a few kilobytes can hold gigabytes, and must not before anybody counts."""
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding in ("", "identity"):
        async for piece in response.aiter_raw(_PIECE):
            yield piece
        return
    if encoding not in ("gzip", "x-gzip"):
        raise ScrapeError(f"{host} answered packed as {encoding[:40]}; expected gzip or plain text.")
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    async for packed in response.aiter_raw(_PIECE):
        rest = packed
        while rest:
            yield unpacker.decompress(rest, _PIECE)
            rest = unpacker.unconsumed_tail
    yield unpacker.flush()
    if not unpacker.eof:
        raise ScrapeError(f"{host} could not be read: the packed answer ends before its end.")
