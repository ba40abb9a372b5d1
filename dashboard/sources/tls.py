"""Whom to trust and who we are, of PEM texts to what a TLS connection is made with. Asks nobody."""

import ssl
import tempfile
from functools import lru_cache

import httpx

from dashboard.sources.target import Tls

NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # trusts nobody


class TlsError(ValueError):
    """The texts cannot be used; the message is one sentence and repeats nothing of them."""


@lru_cache(maxsize=64)  # reading the system's authorities takes 20 ms, more than all else of a scrape
def tls_context(tls: Tls) -> ssl.SSLContext:
    """Raises TlsError."""
    context = _trusting(tls.ca)
    if tls.cert or tls.key:
        _show(context, tls.cert, tls.key)
    if tls.is_unchecked:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _trusting(ca: str) -> ssl.SSLContext:
    if not ca:
        return httpx.create_ssl_context(trust_env=False)
    try:
        return ssl.create_default_context(cadata=ca)
    except (ssl.SSLError, TypeError, ValueError):  # TypeError: not ASCII
        raise TlsError("This is no certificate; expected PEM, “-----BEGIN CERTIFICATE-----” and so on.") from None


def _show(context: ssl.SSLContext, cert: str, key: str) -> None:
    """OpenSSL reads a certificate of ours from a file only: one of the process's own, for its owner, gone at once."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
        file.write(f"{cert}\n{key}\n")
        file.flush()
        try:
            context.load_cert_chain(file.name, password=_refuse)
        except (ssl.SSLError, ValueError, OSError):
            raise TlsError(
                "The certificate and its key cannot be used together; expected both as PEM, of one pair, the key "
                "without a password."
            ) from None


def _refuse() -> str:
    """OpenSSL would ask at the terminal."""
    return ""
