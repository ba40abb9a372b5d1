"""The way of a tenant and a salt through real processes: from the API key and the body to the engine and the log."""

import json
from typing import Any

import httpx

from dashboard.api.schemas import MAX_SALT_LENGTH
from tests.e2e.looks import rows
from tests.e2e.stack import Stack


def ask(stack: Stack, key: str, **fields: Any) -> httpx.Response:
    message = {"role": "user", "content": json.dumps({"words": 1, "pool": True})}
    body = {"model": "scripted", "messages": [message]} | fields
    return httpx.post(
        f"{stack.base_url}/v1/chat/completions", json=body, headers={"Authorization": f"Bearer {key}"}, timeout=20
    )


def new_key(stack: Stack, name: str, *options: str) -> str:
    return stack.manage("createapikey", name, *options)


def pool_of(answer: httpx.Response) -> Any:
    """Tenant and salt as the engine got them."""
    return json.loads(answer.raise_for_status().json()["choices"][0]["message"]["content"])


def test_the_engine_gets_the_key_s_tenant_and_the_client_s_salt(scripted_stack: Stack) -> None:
    acme = new_key(scripted_stack, "acme 1", "--tenant", "acme")
    assert pool_of(ask(scripted_stack, acme)) == ["acme", ""]
    assert pool_of(ask(scripted_stack, acme, cache_salt="s" * MAX_SALT_LENGTH)) == ["acme", "s" * MAX_SALT_LENGTH]
    assert pool_of(ask(scripted_stack, acme, cache_salt=None)) == ["acme", ""]


def test_a_key_without_a_tenant_shares_the_common_pool_whatever_it_sends(scripted_stack: Stack) -> None:
    assert pool_of(ask(scripted_stack, scripted_stack.api_key)) == ["", ""]
    assert pool_of(ask(scripted_stack, scripted_stack.api_key, cache_salt="acme", tenant="acme")) == ["", "acme"]


def test_the_request_log_says_whose_request_it_was(scripted_stack: Stack) -> None:
    key = new_key(scripted_stack, "umbrella 1", "--tenant", "umbrella")
    request_id = ask(scripted_stack, key, cache_salt="secret").raise_for_status().json()["id"]
    logged = f"SELECT tenant FROM dashboard_requestlog WHERE request_id = '{request_id}'"
    scripted_stack.wait_until(lambda: rows(scripted_stack, logged) == [("umbrella",)], "the request is logged")
