"""The chat page in a real browser, against an engine that answers by script (tests/e2e/scripted_engine.py)."""

import json

from playwright.sync_api import Page, expect

from tests.browser.conftest import Visits


def opened(visits: Visits) -> Page:
    page = visits.open("/chat/")
    expect(page.locator("#model option")).to_have_text("scripted")
    return page


def ask(page: Page, **script: object) -> None:
    page.get_by_label("Your message").fill(json.dumps(script))
    page.keyboard.press("Enter")


def test_an_answer_streams_in_and_the_prompt_is_coloured_by_tier(visits: Visits) -> None:
    page = opened(visits)
    ask(page, words=5)
    expect(page.locator("[data-role=assistant] .said")).to_have_text("w0 w1 w2 w3 w4")
    runs = page.locator("#prompt-text .run")
    assert [(run.get_attribute("data-origin"), run.inner_text()) for run in runs.all()] == [
        ("gpu", "cached"),
        ("computed", "new"),
    ]
    assert runs.nth(0).evaluate("e => getComputedStyle(e).borderBottomColor") == "rgb(0, 148, 112)"


def test_the_counts_are_the_answers_own(visits: Visits) -> None:
    page = opened(visits)
    ask(page, words=2)
    expect(page.locator("#counts tr")).to_have_count(5)
    tokens = {
        row.get_attribute("data-origin"): row.get_attribute("data-tokens") for row in page.locator("#counts tr").all()
    }
    assert tokens == {"gpu": "48", "cpu": "16", "disk": "16", "remote": "0", "computed": "20"}
    expect(page.locator("#hit-rate")).to_have_text("80.0 %")
    expect(page.locator("#ttft")).to_have_text("10 ms")


def test_words_are_shown_while_the_answer_still_streams(visits: Visits) -> None:
    page = opened(visits)
    ask(page, words=100, pause=0.1)
    expect(page.locator("[data-state=streaming] .said")).to_contain_text("w1")
    assert "w99" not in page.locator("[data-role=assistant] .said").inner_text()
    page.get_by_role("button", name="Stop").click()


def test_stop_ends_the_request_in_the_engine_and_keeps_what_was_said(visits: Visits) -> None:
    page = opened(visits)
    ask(page, words=300, pause=0.1)
    expect(page.locator("[data-role=assistant] .said")).to_contain_text("w2")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("[data-role=assistant] .facts")).to_have_text("Stopped.")
    expect(page.get_by_role("button", name="Send", exact=True)).to_be_visible()
    told = json.loads(visits.stack.valkey().get("ts:engine:local") or "{}")
    visits.stack.wait_until(lambda: is_idle(visits), f"the engine is idle, not as in {told}", 20)


def is_idle(visits: Visits) -> bool:
    told = json.loads(visits.stack.valkey().get("ts:engine:local") or "{}")
    return bool(told) and told["requests_running"] == 0


def test_an_error_is_a_sentence_and_the_question_can_be_sent_again(visits: Visits) -> None:
    page = opened(visits)
    ask(page, words=0, fail="The engine lost its way.")
    expect(page.get_by_role("alert")).to_contain_text("The engine lost its way.")
    assert "lost its way" in page.get_by_label("Your message").input_value()
    visits.watch.problems = [text for text in visits.watch.problems if "/v1/chat/completions" not in text]


def test_a_second_turn_sends_the_whole_conversation(visits: Visits) -> None:
    page = opened(visits)
    ask(page, words=1)
    expect(page.locator("[data-role=assistant] .facts")).to_have_count(1)
    with page.expect_request("**/v1/chat/completions") as sent:
        ask(page, words=2)
    messages = json.loads(sent.value.post_data or "{}")["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert messages[1]["content"] == "w0 "


def test_answers_are_sampled_as_the_models_makers_advise(visits: Visits) -> None:
    page = opened(visits)
    with page.expect_request("**/v1/chat/completions") as sent:
        ask(page, words=1)
    body = json.loads(sent.value.post_data or "{}")
    assert (body["temperature"], body["top_p"]) == (0.2, 0.9)


def test_a_new_conversation_starts_from_nothing(visits: Visits) -> None:
    page = opened(visits)
    ask(page, words=1)
    expect(page.locator("[data-role=assistant] .facts")).to_have_count(1)
    page.get_by_role("button", name="New conversation").click()
    expect(page.locator(".turn")).to_have_count(0)
    expect(page.get_by_role("heading", name="Ask something, then ask it again")).to_be_visible()
