"""Fetches a metrics text over HTTP: with timeouts, a size limit and no redirects. Knows nothing of what is in it."""

import time
from collections.abc import Callable
from urllib.parse import urlsplit

import httpx

from dashboard.sources.exposition import MAX_BYTES
from dashboard.sources.target import Target

TIMEOUT = httpx.Timeout(5.0, connect=3.0)
TOTAL_SECONDS = 10.0  # a server that trickles a byte at a time never meets the read timeout
_ACCEPT = "application/openmetrics-text;version=1.0.0;q=0.9,text/plain;version=0.0.4;q=0.8,*/*;q=0.1"


class ScrapeError(Exception):
    """The engine's metrics could not be fetched; the message is one sentence for a person."""


def fetch(
    url: str, *, transport: httpx.BaseTransport | None = None, clock: Callable[[], float] = time.monotonic
) -> str:
    """The text at `url`. Raises ScrapeError."""
    host = _host(url)
    try:
        with (
            httpx.Client(timeout=TIMEOUT, follow_redirects=False, transport=transport, trust_env=False) as client,
            client.stream("GET", url, headers={"Accept": _ACCEPT, "User-Agent": "tierscope"}) as response,
        ):
            _check_status(response, host)
            return _bounded(response, host, clock() + TOTAL_SECONDS, clock)
    except httpx.TimeoutException:
        raise ScrapeError(f"{host} did not answer within {TIMEOUT.read:g} s.") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ScrapeError(f"{host} could not be read: {error or type(error).__name__}.") from None


def fetch_target(target: Target) -> str:
    """The text of one watched engine. Raises ScrapeError."""
    return fetch(target.url)


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or url
    except ValueError:
        raise ScrapeError(f"{url} could not be read: it is no address.") from None


def _check_status(response: httpx.Response, host: str) -> None:
    if response.is_redirect:
        raise ScrapeError(f"{host} answered with a redirect; give the address of the metrics text itself.")
    if response.status_code != httpx.codes.OK:
        raise ScrapeError(f"{host} answered {response.status_code}; expected 200 and a metrics text.")


def _bounded(response: httpx.Response, host: str, deadline: float, clock: Callable[[], float]) -> str:
    received = bytearray()
    for chunk in response.iter_bytes():
        received += chunk
        if len(received) > MAX_BYTES:
            raise ScrapeError(f"{host} sent more than {MAX_BYTES // 2**20} MiB, the most that is read.")
        if clock() > deadline:
            raise ScrapeError(f"{host} was still sending after {TOTAL_SECONDS:g} s.")
    return received.decode("utf-8", errors="replace")
