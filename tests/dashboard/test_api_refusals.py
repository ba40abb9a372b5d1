"""What /v1 refuses, and how: OpenAI's error shape, the right status, one sentence that names what was wrong."""

import json
from typing import Any

import httpx
import pytest

from tests.e2e.stack import Stack

USER = {"role": "user", "content": "hello"}


def post(stack: Stack, body: Any, path: str = "chat/completions", **options: Any) -> httpx.Response:
    headers = {"Authorization": f"Bearer {stack.api_key}"} | options.pop("headers", {})
    # json.dumps escapes half a surrogate pair as clients do; httpx's own encoding refuses to send one.
    content = body if isinstance(body, str | bytes) else json.dumps(body)
    return httpx.post(f"{stack.base_url}/v1/{path}", headers=headers, timeout=20, content=content, **options)


def chat(**fields: Any) -> dict[str, Any]:
    return {"model": "scripted", "messages": [USER]} | fields


@pytest.mark.parametrize(
    ("body", "param", "words"),
    [
        ({"messages": [USER]}, "model", "“model” is missing"),
        ({"model": "scripted"}, "messages", "“messages” is missing"),
        (chat(messages=[]), "messages", "at least 1 item"),
        (chat(messages=[{"role": "tool", "content": "x"}]), "messages.0.role", "'system', 'developer', 'user'"),
        (chat(messages=[{"role": "user"}]), "messages.0", "A user message needs “content”"),
        (
            chat(messages=[{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "a"}}]}]),
            "messages.0.content",
            "reads text only",
        ),
        (chat(temperature=2.5), "temperature", "less than or equal to 2"),
        (chat(temperature="hot"), "temperature", "valid number"),
        (chat(top_p=0), "top_p", "greater than 0"),
        (chat(top_k=-1), "top_k", "greater than or equal to 0"),
        (chat(max_tokens=0), "max_tokens", "greater than or equal to 1"),
        (chat(max_tokens=10**30), "max_tokens", "less than or equal to 2147483647"),
        (chat(max_completion_tokens=1.5), "max_completion_tokens", "integer"),
        (chat(seed="x"), "seed", "integer"),
        (chat(stop=["a", "b", "c", "d", "e"]), "stop", "a list of up to 4"),
        (chat(stop=""), "stop", "1 to 256 characters"),
        (chat(stop=[3]), "stop", "a string or a list"),
        (chat(cache_salt=""), "cache_salt", "a string of 1 to 256 characters"),
        (chat(cache_salt="x" * 257), "cache_salt", "a string of 1 to 256 characters"),
        (chat(cache_salt=7), "cache_salt", "a string of 1 to 256 characters"),
        (chat(cache_salt="a\ud800"), "cache_salt", "half a character"),
        (chat(n=2), "n", "leave it out or send 1"),
        (chat(logprobs=True), "logprobs", "not supported here"),
        (chat(tools=[{"type": "function"}]), "tools", "not supported here"),
        (chat(frequency_penalty=0.5), "frequency_penalty", "leave it out or send 0"),
        (chat(response_format={"type": "json_object"}), "response_format", "not supported here"),
        (chat(stream="yes"), "stream", "boolean"),
        (chat(messages=[{"role": "user", "content": "a\ud800"}]), "messages.0.content", "half a character"),
        (
            chat(messages=[{"role": "user", "content": [{"type": "text", "text": "\udc00"}]}]),
            "messages.0.content.0.text",
            "half",
        ),
    ],
)
def test_a_wrong_field_is_named_in_one_sentence(
    scripted_stack: Stack, body: dict[str, Any], param: str, words: str
) -> None:
    answer = post(scripted_stack, body)

    assert answer.status_code == 400
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert (error["type"], error["param"]) == ("invalid_request_error", param)
    assert words in error["message"]


@pytest.mark.parametrize(
    "prompt", ["", [], [[]], [""], ["a", "b"], [[1], [2]], [1.5], [-1], [2**31], [True], [None], 3, {}, ["a", 1]]
)
def test_the_older_endpoint_takes_one_prompt(scripted_stack: Stack, prompt: Any) -> None:
    answer = post(scripted_stack, {"model": "scripted", "prompt": prompt}, "completions")

    assert answer.status_code == 400
    assert answer.json()["error"]["message"].startswith(("“prompt” ", "One prompt a request"))
    assert answer.json()["error"]["param"].startswith("prompt")


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("", "The body is empty; expected a JSON object."),
        ("[]", "The body is a list; expected a JSON object."),
        ("[1]", "The body is a list; expected a JSON object."),
        ("null", "The body is null; expected a JSON object."),
        ("false", "The body is false; expected a JSON object."),
        ("3", "The body is a number; expected a JSON object."),
        ('"x"', "The body is a string; expected a JSON object."),
        ("{", "The body is not JSON: Expecting property name enclosed in double quotes at line 1, column 2."),
        ("nonsense", "The body is not JSON: Expecting value at line 1, column 1."),
        (b'{"model": "\xff"}', "The body is not UTF-8: its byte 11 begins no character."),
        ('{"seed": NaN}', "The body is not JSON: it holds NaN, which JSON does not have."),
        ('{"seed": -Infinity}', "The body is not JSON: it holds -Infinity, which JSON does not have."),
        ('{"seed": 1, "seed": 2}', "“seed” is there twice in one object of the body."),
        ('{"\\ud800": 1, "\\ud800": 2}', "“?” is there twice in one object of the body."),
        ('{"seed": ' + "9" * 5000 + "}", "The body holds a number with more digits than are read."),
        ('{"x": ' + "[" * 50_000 + "]" * 50_000 + "}", "The body is nested too deeply to be read."),
        ("[" * 100_000, "The body is nested too deeply to be read."),
    ],
)
def test_a_body_that_is_no_object_is_refused_with_what_is_wrong(
    scripted_stack: Stack, body: str | bytes, sentence: str
) -> None:
    answer = post(scripted_stack, body)

    assert answer.status_code == 400
    assert answer.json()["error"] == {
        "message": sentence,
        "type": "invalid_request_error",
        "param": None,
        "code": "invalid_body",
    }


@pytest.mark.parametrize(
    ("headers", "sentence"),
    [
        ({"Content-Type": "text/plain"}, "The body is said to be text/plain; expected application/json."),
        (
            {"Content-Type": "application/x-www-form-urlencoded"},
            "The body is said to be application/x-www-form-urlencoded; expected application/json.",
        ),
        ({"Content-Encoding": "gzip"}, "The body is encoded as gzip; send it as it is."),
    ],
)
def test_a_body_that_is_said_to_be_something_else_is_not_read(
    scripted_stack: Stack, headers: dict[str, str], sentence: str
) -> None:
    answer = post(scripted_stack, chat(), headers=headers)

    assert (answer.status_code, answer.json()["error"]["code"]) == (415, "unsupported_media_type")
    assert answer.json()["error"]["message"] == sentence


@pytest.mark.parametrize("kind", [None, "application/json", "Application/JSON; charset=UTF-8"])
def test_json_is_read_under_each_of_its_names(scripted_stack: Stack, kind: str | None) -> None:
    answer = post(scripted_stack, "\ufeff" + json.dumps(chat()), headers={"Content-Type": kind} if kind else {})

    assert answer.status_code == 200


def test_half_a_character_in_a_prompt_or_a_stop_is_refused(scripted_stack: Stack) -> None:
    for fields in ({"prompt": "a\ud800"}, {"prompt": ["\udfff"]}, {"prompt": "a", "stop": "\ud800"}):
        answer = post(scripted_stack, {"model": "scripted"} | fields, "completions")

        assert (answer.status_code, "half a character" in answer.json()["error"]["message"]) == (400, True)


def test_neutral_values_of_unsupported_fields_are_accepted(scripted_stack: Stack) -> None:
    neutral = chat(n=1, logprobs=False, tools=[], presence_penalty=0, response_format={"type": "text"}, user="me")

    assert post(scripted_stack, neutral).status_code == 200


def test_a_list_of_text_parts_is_content(scripted_stack: Stack) -> None:
    parts = [{"type": "text", "text": '{"words":'}, {"type": "text", "text": "1}"}]
    answer = post(scripted_stack, chat(messages=[{"role": "user", "content": parts}]))

    assert answer.json()["choices"][0]["message"]["content"] == "w0 "


def test_a_body_above_the_limit_is_refused_while_it_arrives(scripted_stack: Stack) -> None:
    announced = post(scripted_stack, b"x" * 5_000_000)
    unannounced = httpx.post(
        f"{scripted_stack.base_url}/v1/chat/completions", content=(b"x" * 100_000 for _ in range(50)), timeout=20
    )

    assert announced.status_code == unannounced.status_code == 413
    assert announced.json()["error"]["code"] == "body_too_large"


def test_an_unknown_address_and_method_are_told_in_the_same_shape(scripted_stack: Stack) -> None:
    unknown = post(scripted_stack, {}, "embeddings")
    wrong_method = httpx.get(f"{scripted_stack.base_url}/v1/chat/completions", timeout=20)

    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "unknown_url")
    assert (wrong_method.status_code, wrong_method.json()["error"]["code"]) == (405, "method_not_allowed")
    assert wrong_method.headers["Allow"] == "POST"


@pytest.mark.parametrize("path", ["", "/", "/models/", "/models/%0a", "/" + "a" * 5000])
def test_no_address_under_v1_is_answered_with_a_page(scripted_stack: Stack, path: str) -> None:
    headers = {"Authorization": f"Bearer {scripted_stack.api_key}"}
    answer = httpx.get(f"{scripted_stack.base_url}/v1{path}", headers=headers, timeout=20)

    assert answer.status_code == 404
    assert len(answer.json()["error"]["message"]) < 200


def test_a_foreign_host_name_is_refused_in_the_same_shape(scripted_stack: Stack) -> None:
    for path in ("models", "openapi.json", "nothing"):
        answer = httpx.get(f"{scripted_stack.base_url}/v1/{path}", headers={"Host": "evil.example"}, timeout=20)

        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "unknown_host")
        assert "TIERSCOPE_ALLOWED_HOSTS" in answer.json()["error"]["message"]


def test_head_is_answered_wherever_get_is(scripted_stack: Stack) -> None:
    headers = {"Authorization": f"Bearer {scripted_stack.api_key}"}
    for path, status in (("models", 200), ("models/scripted", 200), ("models/none", 404), ("openapi.json", 200)):
        answer = httpx.head(f"{scripted_stack.base_url}/v1/{path}", headers=headers, timeout=20)

        assert (answer.status_code, answer.content) == (status, b"")
    assert httpx.head(f"{scripted_stack.base_url}/v1/models", timeout=20).status_code == 401
    assert httpx.post(f"{scripted_stack.base_url}/v1/openapi.json", timeout=20).headers["Allow"] == "GET, HEAD"


@pytest.mark.parametrize(
    ("header", "code"),
    [
        ({}, "missing_api_key"),
        ({"Authorization": "Bearer nope"}, "invalid_api_key"),
        ({"Authorization": "Basic eA=="}, "invalid_api_key"),
    ],
)
def test_without_a_valid_key_nothing_is_answered(scripted_stack: Stack, header: dict[str, str], code: str) -> None:
    for method, path in (("POST", "chat/completions"), ("POST", "completions"), ("GET", "models")):
        answer = httpx.request(method, f"{scripted_stack.base_url}/v1/{path}", headers=header, timeout=20)
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, code)
        assert answer.headers["WWW-Authenticate"] == "Bearer"


def test_a_staff_session_may_ask_with_a_csrf_token_and_not_without(scripted_stack: Stack) -> None:
    with httpx.Client(base_url=scripted_stack.base_url, timeout=20) as browser:
        form = {"username": "admin", "password": scripted_stack.admin_password}
        browser.get("/admin/login/")
        form["csrfmiddlewaretoken"] = browser.cookies["csrftoken"]
        assert browser.post("/admin/login/?next=/healthz", data=form).status_code == 302

        refused = browser.post("/v1/chat/completions", json=chat())
        token = {"X-CSRFToken": browser.cookies["csrftoken"]}
        answered = browser.post("/v1/chat/completions", json=chat(), headers=token)

    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "csrf_failed")
    assert answered.status_code == 200


def test_the_description_of_the_api_is_served(scripted_stack: Stack) -> None:
    answer = httpx.get(f"{scripted_stack.base_url}/v1/openapi.json", timeout=20)

    assert {"/v1/chat/completions", "/v1/completions", "/v1/models"} <= set(answer.json()["paths"])
