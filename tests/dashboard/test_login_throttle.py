"""Guessing passwords: ten tries from one address, then five minutes of nothing, for that name and that address only."""

from datetime import timedelta
from typing import Any

import pytest
from axes.models import AccessAttempt
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import AsyncClient, Client
from django.utils import timezone

from dashboard.web_server import configured

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def ada(settings: Any) -> User:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # the real one is slow on purpose
    return User.objects.create_superuser("ada", password="right")


def attempt(password: str, *, name: str = "ada", path: str = "/login/", address: str = "127.0.0.1") -> int:
    answer = Client(REMOTE_ADDR=address).post(path, {"username": name, "password": password})
    return answer.status_code


def guess(times: int, **where: str) -> list[int]:
    return [attempt(f"guess {number}", **where) for number in range(times)]


def test_the_tenth_wrong_password_is_the_last_for_a_while_also_before_a_right_one() -> None:
    assert guess(10) == [200] * 9 + [429]
    answer = Client().post("/login/", {"username": "ada", "password": "right", "next": "/requests/"})
    assert answer.status_code == 429
    assert answer["Retry-After"] == "300"
    text = answer.content.decode()
    assert text.count("Too many wrong passwords") == 1
    assert "wait 5 minutes" in text
    assert 'value="/requests/"' in text
    assert "is wrong" not in text


def test_the_owner_gets_in_from_elsewhere_and_other_names_from_there() -> None:
    User.objects.create_superuser("bob", password="right")
    guess(10, address="192.0.2.7")
    assert attempt("right", address="192.0.2.7") == 429
    assert attempt("right", address="192.0.2.8") == 302
    assert attempt("right", name="bob", address="192.0.2.7") == 302


def test_the_admins_own_form_is_throttled_too() -> None:
    assert guess(10, path="/admin/login/")[-1] == 429
    assert attempt("right") == 429


def test_five_minutes_later_all_is_forgotten_and_tries_meanwhile_did_not_count() -> None:
    guess(10)
    AccessAttempt.objects.update(attempt_time=timezone.now() - timedelta(minutes=4))
    assert attempt("right") == 429
    AccessAttempt.objects.update(attempt_time=timezone.now() - timedelta(minutes=5, seconds=1))
    assert attempt("right") == 302


def test_a_right_password_forgets_the_wrong_ones() -> None:
    guess(9)
    assert attempt("right") == 302
    assert guess(9) == [200] * 9


def test_the_command_lets_in_at_once() -> None:
    guess(10)
    call_command("axes_reset_username", "ada", verbosity=0)
    assert attempt("right") == 302


def test_no_password_is_kept() -> None:
    guess(2)
    assert "guess" not in "".join(AccessAttempt.objects.values_list("post_data", flat=True))


@pytest.mark.django_db(transaction=True)
async def test_it_works_in_the_asynchronous_web_process() -> None:
    form = {"username": "ada", "password": "wrong"}
    assert [(await AsyncClient().post("/login/", form)).status_code for _ in range(11)] == [200] * 9 + [429] * 2


async def address_seen(trusted: list[str], settings: Any) -> str:
    """What the application is told of a client on this machine that says it is forwarded."""
    settings.TRUSTED_PROXIES = trusted
    seen: list[Any] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["client"][0])

    config = configured()
    config.app = application
    config.load()
    headers = [(b"x-forwarded-for", b"6.6.6.6, 192.0.2.9")]
    scope = {"type": "http", "client": ("127.0.0.1", 5), "headers": headers, "scheme": "http", "path": "/"}
    await config.loaded_app(scope, None, None)
    return str(seen[0])


async def test_a_new_address_for_each_guess_cannot_be_made_up(settings: Any) -> None:
    assert await address_seen([], settings) == "127.0.0.1"


async def test_a_trusted_proxy_tells_the_address_of_its_client_not_what_that_one_says(settings: Any) -> None:
    assert await address_seen(["127.0.0.1"], settings) == "192.0.2.9"
