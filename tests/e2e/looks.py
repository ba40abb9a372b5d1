"""How tests look at a stack from outside: its pages as the administrator, its database as rows. Changes nothing."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from tests.e2e.stack import Stack


@contextmanager
def logged_in(stack: Stack) -> Iterator[httpx.Client]:
    """Logged in as the administrator."""
    with httpx.Client(base_url=stack.base_url, timeout=20, follow_redirects=True) as browser:
        browser.get("/login/").raise_for_status()
        form = {"username": "admin", "password": stack.admin_password}
        form["csrfmiddlewaretoken"] = browser.cookies["csrftoken"]
        browser.post("/login/", data=form).raise_for_status()
        yield browser


def rows(stack: Stack, query: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(f"file:{stack.database}?mode=ro", uri=True, timeout=10)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()
