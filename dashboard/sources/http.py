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
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from errno import errorcode
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx

from dashboard.sources.exposition import MAX_BYTES
from dashboard.sources.target import Allowed, Target, Tls
from dashboard.sources.tls import NO_TLS, TlsError, tls_context

TIMEOUT = httpx.Timeout(5.0, connect=3.0)
# A server that trickles its name, its certificate, headers or text never meets the read timeout.
TOTAL_SECONDS = 10.0
METRICS = "application/openmetrics-text;version=1.0.0;q=0.9,text/plain;version=0.0.4;q=0.8,*/*;q=0.1"
_SENT = {"Accept-Encoding": "gzip", "User-Agent": "tierscope"}
_PIECE = 64 * 1024
_NUMBER = re.compile(r"\[Errno -?\d+\] ?|\[SSL: \w+\] ?| ?\(_ssl\.c:\d+\)")


class ScrapeError(Exception):
    """The text could not be fetched; the message is one sentence for a person."""


def fetch(url: str, *, headers: Mapping[str, str] | None = None, tls: Tls | None = None, accept: str = METRICS) -> str:
    """The text at `url`, within TOTAL_SECONDS. Raises ScrapeError. Not to be called where an event loop runs."""
    sent = {"Accept": accept, **_SENT, **(headers or {})}
    return _asked(_Request("GET", url, _host(url), sent, tls or Tls(), _text))


def post_json(url: str, told: Mapping[str, Any], *, headers: Mapping[str, str], tls: Tls) -> None:
    """Posts it, within TOTAL_SECONDS; any 2xx is well. Raises ScrapeError. As `fetch`, not where an event loop runs."""
    sent = {"Content-Type": "application/json", **_SENT, **headers}
    _asked(_Request("POST", url, _host(url), sent, tls, _taken, json.dumps(told).encode()))


def ask_form(
    url: str,
    form: Mapping[str, str],
    *,
    allowed: Allowed,
    refusal: Callable[[int, str], str],
    seconds: float,
    may_be_silent: bool = False,
) -> str:
    """What is answered to a form within `seconds`, which are what is left of TOTAL_SECONDS where it is the second of
    two. As `fetch`, but `refusal` makes words of the status and text of a refusal. One that reads much before it
    answers `may_be_silent` for as long.
    """

    async def answer(response: httpx.Response, host: str) -> str:
        _check_no_redirect(response, host, "give the address of the server itself")
        text = await _bounded(response, host)
        if response.status_code != httpx.codes.OK:
            raise ScrapeError(f"{host} answered {response.status_code}{refusal(response.status_code, text)}")
        return text

    sent = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json", **_SENT}
    content = urlencode(form).encode()
    headers = {**sent, **allowed.headers}
    request = _Request("POST", url, _host(url), headers, allowed.tls, answer, content, seconds, may_be_silent)
    return _asked(request)


Answer = Callable[[httpx.Response, str], Awaitable[str]]  # is given the host, for its sentences


@dataclass(frozen=True)
class _Request:
    method: str
    url: str
    host: str
    headers: Mapping[str, str] = field(repr=False)
    tls: Tls
    answer: Answer
    content: bytes | None = None
    seconds: float | None = None  # None: TOTAL_SECONDS
    may_be_silent: bool = False

    @property
    def timeout(self) -> httpx.Timeout:
        return httpx.Timeout(self.seconds, connect=TIMEOUT.connect) if self.may_be_silent else TIMEOUT

    @property
    def extensions(self) -> dict[str, str]:
        return {"sni_hostname": self.tls.server_name} if self.tls.server_name else {}


def _asked(request: _Request) -> str:
    host = request.host
    try:
        with asyncio.Runner(loop_factory=_Loop) as runner:
            return runner.run(_answered(request))
    except TimeoutError:
        in_all = max(TOTAL_SECONDS, request.seconds or 0.0)
        raise ScrapeError(f"{host} was still answering after {in_all:g} s.") from None
    except httpx.TimeoutException as error:
        is_connecting = isinstance(error, httpx.ConnectTimeout)
        seconds = request.timeout.connect if is_connecting else request.timeout.read
        raise ScrapeError(f"{host} did not answer within {seconds:g} s.") from None
    except TlsError as error:
        raise ScrapeError(f"{host} could not be asked. {error}") from None
    except httpx.LocalProtocolError:  # its words would repeat the header
        raise ScrapeError(f"{host} could not be asked; is a header odd?") from None
    except (httpx.HTTPError, httpx.InvalidURL, zlib.error, OSError) as error:  # TLS alerts come as they are
        raise ScrapeError(f"{host} could not be read: {_reason(error)}{_hint(request, error)}.") from None
    except (UnicodeError, ValueError) as error:
        raise ScrapeError(f"{host} could not be asked: {type(error).__name__}; is a header odd?") from None


async def _answered(request: _Request) -> str:
    """Of what can wait, only an event loop ends all of it at one moment: names, TLS, headers, 1xx answers, the text."""
    async with (
        asyncio.timeout(TOTAL_SECONDS if request.seconds is None else request.seconds),
        httpx.AsyncClient(
            timeout=request.timeout, follow_redirects=False, trust_env=False, verify=_context(request)
        ) as client,
        client.stream(
            request.method,
            request.url,
            headers=request.headers,
            content=request.content,
            extensions=request.extensions,
        ) as response,
    ):
        return await request.answer(response, request.host)


async def _text(response: httpx.Response, host: str) -> str:
    _check_status(response, host)
    return await _bounded(response, host)


async def _taken(response: httpx.Response, host: str) -> str:
    """Nobody reads what a receiver says."""
    _check_no_redirect(response, host, "give the address that takes alerts itself")
    if not response.is_success:
        raise ScrapeError(f"{host} answered {response.status_code}; expected 200 or another 2xx.")
    return ""


class _Loop(asyncio.SelectorEventLoop):
    """Names are looked up in a thread. A look-up cannot be ended, and nobody waits for one that was given up."""

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # noqa: ASYNC109  asyncio's own
        """Left to `close`, which does not wait."""


def fetch_target(target: Target) -> str:
    """The text of one watched engine. Raises ScrapeError."""
    return fetch(target.url, headers=target.headers, tls=target.tls)


def _context(request: _Request) -> ssl.SSLContext:
    """Certificates are checked against the system's authorities, or those of the source's own PEM text."""
    return tls_context(request.tls) if request.url.lower().startswith("https:") else NO_TLS


def _reason(error: BaseException) -> str:
    """The innermost cause has the words: "Connection refused", where the outer ones say that no attempt went well.

    Without the system's number for it and where in OpenSSL it is from, which say nothing more.
    """
    error = _innermost(error)
    if isinstance(error, OSError) and error.errno and error.errno in errorcode and not isinstance(error, ssl.SSLError):
        return os.strerror(error.errno)
    return _NUMBER.sub("", str(error)).strip().rstrip(".") or type(error).__name__


def _innermost(error: BaseException) -> BaseException:
    while cause := error.__cause__ or error.__context__:
        error = cause
    return error


def _hint(request: _Request, error: BaseException) -> str:
    """A server that wants a certificate says so with a TLS alert, which a reset connection may swallow."""
    error = _innermost(error)
    is_alert = isinstance(error, ssl.SSLError) and "ALERT" in (error.reason or "")
    is_refusal = is_alert or isinstance(error, ConnectionResetError)
    is_nobody = request.url.lower().startswith("https:") and not request.tls.cert
    return "; perhaps it wants a certificate of ours" if is_refusal and is_nobody else ""


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or url
    except ValueError:
        raise ScrapeError(f"{url} could not be read: it is no address.") from None


def _check_status(response: httpx.Response, host: str) -> None:
    _check_no_redirect(response, host, "give the address of the text itself")
    if response.status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
        raise ScrapeError(f"{host} answered {response.status_code}; expected 200: it wants another token or header.")
    if response.status_code != httpx.codes.OK:
        raise ScrapeError(f"{host} answered {response.status_code}; expected 200 and a text.")


def _check_no_redirect(response: httpx.Response, host: str, wanted: str) -> None:
    if response.is_redirect:
        raise ScrapeError(f"{host} answered with a redirect; {wanted}.")


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
