"""Two real engines, a Tierscope each, and one server for the remote tiers of both: shared, killed, restarted."""

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import pytest

from tests.e2e.stack import Stack

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

RULES = "You are a helpful assistant. " + "Be kind, be brief, be exact. " * 12
SIZES = {"TIERSCOPE_GPU_BYTES": "96 MiB", "TIERSCOPE_CPU_BYTES": "0", "TIERSCOPE_DISK_BYTES": "0"}


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Its own Valkey has the blocks, as it is without any variable."""
    stack = Stack(tmp_path_factory.mktemp("one"), env=SIZES)
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()


@pytest.fixture(scope="module")
def other(one: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    url = f"unix://{quote(str(one.home / 'valkey.sock'))}?db=1"
    stack = Stack(tmp_path_factory.mktemp("other"), env=SIZES | {"TIERSCOPE_REMOTE_URL": url})
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()


def ask(stack: Stack, text: str, max_tokens: int = 12) -> Any:
    messages = [{"role": "system", "content": RULES}, {"role": "user", "content": text}]
    client = stack.openai(timeout=240)
    model = client.models.list().data[0].id
    return client.chat.completions.create(model=model, messages=messages, max_tokens=max_tokens, temperature=0)


def metric(stack: Stack, name: str) -> float:
    line = next(line for line in stack.metrics().splitlines() if line.startswith(f'{name}{{cache_tier="remote"'))
    return float(line.rsplit(" ", 1)[1])


def test_what_one_engine_computed_another_reads_and_says_the_same(one: Stack, other: Stack) -> None:
    first = ask(one, "Who wrote Hamlet?")
    num_blocks = (first.usage.prompt_tokens - 1) // 16
    held = "tierscope_tier_resident_tokens"
    other.wait_until(lambda: metric(other, held) >= 16 * num_blocks, "the other engine has looked", 30)
    second = ask(other, "Who wrote Hamlet?")

    assert first.usage.tierscope["hit_tokens"]["remote"] == 0
    assert second.usage.tierscope["hit_tokens"]["remote"] == 16 * num_blocks
    assert second.choices[0].message.content == first.choices[0].message.content
    other.wait_until(lambda: metric(other, "tierscope_cached_prompt_tokens_total") == 16 * num_blocks, "counted", 20)


def test_a_server_that_is_killed_under_traffic_loses_no_request_and_is_used_again(one: Stack, other: Stack) -> None:
    """`other` has a broker of its own: what fails is its remote tier alone."""
    assert metric(other, "tierscope_tier_up") == 1
    with ThreadPoolExecutor(3) as pool:
        answers = [pool.submit(ask, other, f"Name {number} things.", 8) for number in range(9)]
        one.kill("valkey", signal.SIGKILL)
        finished = [answer.result(300).choices[0].finish_reason for answer in answers]
        assert len(finished) == 9
        other.wait_until(lambda: metric(other, "tierscope_tier_up") == 0, "the server is given up", 60)
        assert metric(other, "tierscope_tier_resident_tokens") == 0
        assert ask(other, "Name a river.").choices
    one.start_process("valkey")
    other.wait_until(lambda: metric(other, "tierscope_tier_up") == 1, "the server is used again", 60)
    ask(other, "Who wrote Macbeth?")
    other.wait_until(lambda: metric(other, "tierscope_tier_resident_tokens") > 0, "blocks are stored again", 30)
