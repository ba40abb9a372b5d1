"""What is wrong with a server's URL, told without repeating it."""

import pytest

from dashboard.server_urls import redis_problem


@pytest.mark.parametrize(
    "url",
    [
        "redis://localhost:6379/0",
        "redis://localhost",
        "redis://user:p%2Fw@localhost:6379/1?health_check_interval=2",
        "rediss://:secret@cache.example.com/1",
        "unix:///run/valkey.sock?db=0",
        "redis://[::1]:6379",
    ],
)
def test_the_urls_that_valkey_clients_speak_are_fine(url: str) -> None:
    assert redis_problem(url) == ""


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("localhost:6379", "no Valkey client speaks"),
        ("secret@localhost:6379", "has no scheme"),
        ("nonsense", "has no scheme"),
        ("http://:secret@host", "starts with a scheme"),
        ("redis://", "names no host"),
        ("redis://host:0", "names no host"),
        ("redis://host:port", "has a port that is not a number"),
        ("redis://host:99999", "has a port that is not a number"),
        ("redis://:sec/ret@host:6379/0", "has a port that is not a number"),
        ("redis://host/secret", "has a database that is not a number"),
        ("redis://host?db=secret", "has a query"),
        ("unix://", "names no socket"),
    ],
)
def test_a_url_that_no_client_speaks_is_told_without_the_password(url: str, problem: str) -> None:
    told = redis_problem(url)
    assert problem in told
    assert "sec" not in told
