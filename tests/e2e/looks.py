"""How tests look at a stack from outside: its pages as the administrator, its database as rows. Changes nothing."""

import sqlite3
from typing import Any

import httpx

from tests.e2e.stack import Stack
from tests.stored import Row, rows_of


def logged_in(stack: Stack, timeout_seconds: float = 20) -> httpx.Client:
    """Logged in as the administrator; whoever asked closes it."""
    browser = httpx.Client(base_url=stack.base_url, timeout=timeout_seconds, follow_redirects=True)
    browser.get("/login/").raise_for_status()
    form = {"username": "admin", "password": stack.admin_password, "csrfmiddlewaretoken": browser.cookies["csrftoken"]}
    browser.post("/login/", data=form).raise_for_status()
    return browser


def buckets(stack: Stack, **told: Any) -> list[Row]:
    """All that its series hold; `told`: what the columns have to be."""
    return rows_of(lambda query: rows(stack, query), **told)


def rows(stack: Stack, query: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(f"file:{stack.database}?mode=ro", uri=True, timeout=10)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()
