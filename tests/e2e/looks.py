"""How tests look at a stack from outside: its pages as the administrator, its database as rows. Changes nothing."""

import sqlite3
from html.parser import HTMLParser
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


def change(browser: httpx.Client, path: str, **typed: str) -> str:
    """Saves the form at `path` of the admin as a browser would, with what is typed into it. The page that follows."""
    form = _Form()
    form.feed(browser.get(path).raise_for_status().text)
    return browser.post(path, data=form.values | typed, headers={"Referer": str(browser.base_url)}).text


class _Form(HTMLParser):
    """What a browser would post if nothing was touched, but for buttons."""

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[str, str] = {}
        self._select = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = {name: value or "" for name, value in attrs}
        if tag == "select":
            self._select = told.get("name", "")
        elif tag == "option" and "selected" in told:
            self.values[self._select] = told["value"]
        elif tag == "input" and told.get("name") and self._is_sent(told):
            self.values[told["name"]] = told.get("value", "")

    def _is_sent(self, told: dict[str, str]) -> bool:
        kind = told.get("type", "text")
        return kind != "submit" and (kind not in ("checkbox", "radio") or "checked" in told)
