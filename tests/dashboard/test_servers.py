"""Somebody else's servers are asked before anything starts; each way not to answer is one sentence, soon."""

import socket
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import OperationalError, connection

from dashboard import servers
from dashboard.servers import ServerError, ensure_database, ensure_valkey


@pytest.fixture(autouse=True)
def outside(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.VALKEY_IS_EMBEDDED = False
    monkeypatch.setattr(servers, "_SECONDS", 0.3)


@pytest.fixture
def mute() -> Iterator[socket.socket]:
    """Takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def told(settings: Any, url: str) -> str:
    settings.REDIS_URL = url
    with pytest.raises(ServerError) as raised:
        ensure_valkey()
    text = str(raised.value)
    assert text.startswith("REDIS_URL: ")
    assert "secret" not in text
    assert "\n" not in text
    return text


def test_a_valkey_that_answers_is_fine(settings: Any, valkey: str) -> None:
    settings.REDIS_URL = valkey
    ensure_valkey()


def test_the_embedded_valkey_is_not_asked_before_it_is_started(settings: Any) -> None:
    settings.VALKEY_IS_EMBEDDED, settings.REDIS_URL = True, "unix:///nowhere"
    ensure_valkey()


def test_a_port_where_nobody_listens_is_told(settings: Any) -> None:
    assert "127.0.0.1:9 (Error 111 connecting" in told(settings, "redis://user:secret@127.0.0.1:9/0")


def test_a_socket_that_is_not_there_is_told(settings: Any) -> None:
    assert "/nowhere.sock" in told(settings, "unix:///nowhere.sock?db=0")


def test_a_server_that_says_nothing_is_told(settings: Any, mute: socket.socket) -> None:
    assert "Timeout" in told(settings, f"redis://:secret@127.0.0.1:{mute.getsockname()[1]}")


def test_a_password_that_is_refused_is_told(settings: Any, valkey: str) -> None:
    assert "invalid username-password pair" in told(settings, valkey.replace("unix://", "unix://nobody:secret@"))


def test_a_database_that_cannot_be_opened_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise OperationalError("connection failed: port 9 failed: Connection refused\n\tIs the server running?\n")

    monkeypatch.setattr(connection, "ensure_connection", refuse)
    with pytest.raises(ServerError) as raised:
        ensure_database()
    assert "DATABASE_URL: the database cannot be opened (connection failed" in str(raised.value)
    assert "\n" not in str(raised.value)
