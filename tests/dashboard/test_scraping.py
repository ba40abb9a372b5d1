"""Scraping over real HTTP and TLS: packed answers, tokens, certificates, and servers that mean harm."""

import gzip
import shutil
import threading
import zlib
from pathlib import Path

import pytest

from dashboard.sources import http
from dashboard.sources.headers import MAX_HEADERS, parse_headers
from dashboard.sources.http import ScrapeError, fetch, fetch_target
from dashboard.sources.target import Target, Tls
from tests.dashboard.serving import Answer, self_signed, serving, trickling

TEXT = "".join(f'vllm:prompt_tokens_total{{engine="{number}"}} {number}\n' for number in range(5000))
GZIP = {"Content-Encoding": "gzip"}


def test_a_packed_text_is_unpacked_whole() -> None:
    with serving(lambda path: Answer(gzip.compress(TEXT.encode()), GZIP)) as served:
        assert fetch(served.url) == TEXT
    assert served.asked[0][1]["Accept-Encoding"] == "gzip"


def test_both_formats_are_asked_for() -> None:
    with serving(lambda path: Answer(TEXT)) as served:
        fetch(served.url)
    accept = served.asked[0][1]["Accept"]
    assert "application/openmetrics-text;version=1.0.0" in accept
    assert "text/plain;version=0.0.4" in accept


def test_a_small_answer_that_unpacks_to_gigabytes_is_cut_off_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MAX_BYTES", 300_000)
    unpacked = 0
    make = zlib.decompressobj

    class Counting:
        def __init__(self, wbits: int) -> None:
            self._made = make(wbits)

        def __getattr__(self, name: str) -> object:
            return getattr(self._made, name)

        def decompress(self, data: bytes, limit: int) -> bytes:
            nonlocal unpacked
            piece = self._made.decompress(data, limit)
            unpacked += len(piece)
            return piece

    monkeypatch.setattr("dashboard.sources.http.zlib.decompressobj", Counting)
    bomb = gzip.compress(b"0" * 200_000_000)
    with serving(lambda path: Answer(bomb, GZIP)) as served, pytest.raises(ScrapeError, match="the most that is read"):
        fetch(served.url)
    assert unpacked < 400_000


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (Answer(b"\x00\x01", {"Content-Encoding": "br"}), "answered packed as br; expected gzip or plain text"),
        (Answer(gzip.compress(TEXT.encode())[:-2000], GZIP), "ends before its end"),
        (Answer(b"this is not packed", GZIP), "could not be read: Error -3"),
        (Answer("", status=401), "answered 401; expected 200: it wants another token"),
        (Answer("", status=403), "answered 403; expected 200: it wants another token"),
        (Answer("", status=503), "answered 503; expected 200 and a text"),
        (Answer("", {"Location": "/metrics"}, 307), "answered with a redirect"),
        (Answer("short", {"Content-Length": "5000"}), "could not be read"),
    ],
    ids=lambda told: told if isinstance(told, str) else "",
)
def test_an_answer_that_cannot_be_read_is_told_in_one_sentence(answer: Answer, sentence: str) -> None:
    with serving(lambda path: answer) as served, pytest.raises(ScrapeError, match=sentence) as raised:
        fetch(served.url)
    assert str(raised.value).endswith((".", "?"))
    assert "\n" not in str(raised.value)


def test_what_is_no_unicode_is_read_with_marks_in_its_place() -> None:
    with serving(lambda path: Answer(b'a{b="\xff"} 1\n')) as served:
        assert fetch(served.url) == 'a{b="\ufffd"} 1\n'


def test_token_and_headers_are_sent_and_never_shown() -> None:
    target = Target("", "auto", headers={"Authorization": "Bearer secret-token", "X-Scope-OrgID": "team-a"})
    with serving(lambda path: Answer(TEXT, status=401)) as served, pytest.raises(ScrapeError) as raised:
        fetch_target(Target(served.url, "auto", headers=target.headers))
    sent = served.asked[0][1]
    assert (sent["Authorization"], sent["X-Scope-OrgID"]) == ("Bearer secret-token", "team-a")
    assert "secret" not in f"{raised.value} {target!r}"


def test_a_token_is_not_sent_on_to_where_a_redirect_points() -> None:
    with serving(lambda path: Answer(TEXT)) as elsewhere:
        moved = Answer("", {"Location": f"{elsewhere.url}/metrics"}, 302)
        with serving(lambda path: moved) as served, pytest.raises(ScrapeError, match="redirect"):
            fetch(served.url, headers={"Authorization": "Bearer secret-token"})
    assert elsewhere.asked == []


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is missing")
class TestTls:
    @pytest.fixture
    def certificate(self, tmp_path: Path) -> Path:
        return self_signed(tmp_path)

    def test_a_certificate_that_nobody_vouches_for_is_refused(self, certificate: Path) -> None:
        with serving(lambda path: Answer(TEXT), certificate=certificate) as served:
            with pytest.raises(ScrapeError, match="certificate verify failed"):
                fetch(served.url)
            assert served.asked == []

    def test_an_authority_of_ones_own_is_trusted(self, certificate: Path) -> None:
        with serving(lambda path: Answer(TEXT), certificate=certificate) as served:
            assert fetch(served.url, tls=Tls(ca=certificate.read_text())) == TEXT

    def test_its_name_still_has_to_be_right(self, certificate: Path) -> None:
        with serving(lambda path: Answer(TEXT), certificate=certificate) as served:
            other = served.url.replace("127.0.0.1", "localhost")
            with pytest.raises(ScrapeError, match="certificate verify failed"):
                fetch(other, tls=Tls(ca=certificate.read_text()))

    def test_a_server_behind_another_name_is_checked_by_the_name_that_is_typed(self, tmp_path: Path) -> None:
        certificate = self_signed(tmp_path, "DNS:gpu-7.example")
        with serving(lambda path: Answer(TEXT), certificate=certificate) as served:
            ca = certificate.read_text()
            assert fetch(served.url, tls=Tls(ca=ca, server_name="gpu-7.example")) == TEXT
            for name in ("", "gpu-8.example"):
                with pytest.raises(ScrapeError, match="certificate verify failed"):
                    fetch(served.url, tls=Tls(ca=ca, server_name=name))

    def test_a_server_that_wants_to_know_who_asks_is_shown_our_certificate(
        self, certificate: Path, tmp_path: Path
    ) -> None:
        ours, ca = self_signed(tmp_path, "DNS:tierscope"), certificate.read_text().partition("-----BEGIN PRIVATE")[0]
        cert, key = ours.read_text(), ours.with_suffix(".key").read_text()
        shown = Tls(ca=ca, cert=cert.partition("-----BEGIN PRIVATE")[0], key=key)
        with serving(lambda path: Answer(TEXT), certificate=certificate, client_ca=ours) as served:
            assert fetch(served.url, tls=shown) == TEXT
            with pytest.raises(ScrapeError, match="; perhaps it wants a certificate of ours") as raised:
                fetch(served.url, tls=Tls(ca=ca))
            assert "_ssl.c" not in str(raised.value)
            with pytest.raises(ScrapeError, match="could not be read"):
                fetch(served.url, tls=Tls(ca=ca, cert=ca, key=certificate.with_suffix(".key").read_text()))
        assert len(served.asked) == 1
        assert "PRIVATE" not in repr(shown)

    def test_a_key_of_another_certificate_is_told(self, certificate: Path, tmp_path: Path) -> None:
        ours = self_signed(tmp_path, "DNS:tierscope")
        cert = certificate.read_text().partition("-----BEGIN PRIVATE")[0]
        wrong = Tls(cert=cert, key=ours.with_suffix(".key").read_text())
        with pytest.raises(ScrapeError, match="cannot be used together; expected both as PEM"):
            fetch("https://127.0.0.1:1/", tls=wrong)

    def test_whoever_says_so_reads_without_checking(self, certificate: Path) -> None:
        with serving(lambda path: Answer(TEXT), certificate=certificate) as served:
            assert fetch(served.url, tls=Tls(is_unchecked=True)) == TEXT


def test_headers_are_typed_one_a_line() -> None:
    assert parse_headers("X-Scope-OrgID: team-a\n\n  Authorization:Basic YTpi \n") == {
        "X-Scope-OrgID": "team-a",
        "Authorization": "Basic YTpi",
    }


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("no colon", "Line 1 is no header"),
        ("X-A: 1\nX B: secret", "Line 2 is no header"),
        ("X-A: a\x01secret", "Line 1 is no header"),
        ("X-A:", "Line 1 is no header"),
        ("Host: other", "Host cannot be chosen"),
        ("\n".join(f"X-{number}: 1" for number in range(MAX_HEADERS + 1)), "21 headers are too many"),
    ],
)
def test_what_is_no_header_is_refused_by_its_line_and_not_repeated(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence) as raised:
        parse_headers(text)
    assert "secret" not in str(raised.value)


OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("scheme", "first", "then"),
    [
        ("http", OK, b"X-More: a\r\n"),
        ("http", b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
        ("http", b"", b"HTTP/1.1 103 Early Hints\r\n\r\n" * 1000),
        ("http", CHUNKED, b"1\r\na\r\n"),
        ("http", CHUNKED + b"1;", b"a"),
        ("http", OK + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b"a 1")[:10], b"\0\0\0\xff\xff"),
        ("https", b"\x16\x03\x03\x40\x00\x02", b"\0"),
    ],
    ids=["headers", "1xx", "1xx in floods", "text", "a chunk's extension", "empty packed blocks", "TLS"],
)
def test_a_server_that_trickles_is_given_up_after_its_time_whatever_it_trickles(
    monkeypatch: pytest.MonkeyPatch, scheme: str, first: bytes, then: bytes
) -> None:
    monkeypatch.setattr(http, "TOTAL_SECONDS", 0.3)
    with (
        trickling(first, then) as port,
        pytest.raises(ScrapeError, match=r"127.0.0.1 was still answering after 0\.3 s"),
    ):
        fetch(f"{scheme}://127.0.0.1:{port}/metrics")


def test_a_name_that_is_looked_up_without_end_is_given_up_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "TOTAL_SECONDS", 0.2)
    found = threading.Event()
    monkeypatch.setattr("socket.getaddrinfo", lambda *args, **kwargs: found.wait(60) and [])
    with pytest.raises(ScrapeError, match="nowhere was still answering"):
        fetch("http://nowhere/metrics")
    assert not found.is_set()
    found.set()


def test_a_token_that_no_header_can_hold_is_not_repeated() -> None:
    with serving(lambda path: Answer(TEXT)) as served, pytest.raises(ScrapeError, match="is a header odd") as raised:
        fetch(served.url, headers={"Authorization": "Bearer secret\nsecret"})
    assert "secret" not in str(raised.value)
