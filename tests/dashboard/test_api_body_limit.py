"""The limit on bodies, as plain ASGI: what is announced too large is not read, what arrives too large is cut off."""

from typing import Any

import pytest

from dashboard.body_limit import BodyLimit


class Client:
    """One request's two ends."""

    def __init__(self, chunks: list[bytes], length: int | None = None) -> None:
        self._chunks = chunks
        self.num_read = 0
        headers = [] if length is None else [(b"content-length", str(length).encode())]
        self.scope = {"type": "http", "headers": headers}
        self.sent: list[Any] = []

    async def receive(self) -> Any:
        chunk = self._chunks[self.num_read]
        self.num_read += 1
        return {"type": "http.request", "body": chunk, "more_body": self.num_read < len(self._chunks)}

    async def send(self, message: Any) -> None:
        self.sent.append(message)


async def echo(scope: Any, receive: Any, send: Any) -> None:
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message["body"], message["more_body"]
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


async def served(client: Client) -> int:
    await BodyLimit(echo, 10)(client.scope, client.receive, client.send)
    status: int = client.sent[0]["status"]
    return status


async def test_a_body_within_the_limit_passes() -> None:
    client = Client([b"12345", b"67890"], length=10)

    assert await served(client) == 200
    assert client.sent[1]["body"] == b"1234567890"


async def test_an_announced_body_above_the_limit_is_not_read() -> None:
    client = Client([b"x" * 11], length=11)

    assert await served(client) == 413
    assert client.num_read == 0


async def test_a_body_that_grows_above_the_limit_is_cut_off() -> None:
    client = Client([b"12345", b"67890", b"1", b"never read"])

    assert await served(client) == 413
    assert client.num_read == 3


@pytest.mark.parametrize("length", [b"many", b"-1", b""])
async def test_a_nonsense_length_counts_as_none(length: bytes) -> None:
    client = Client([b"1"])
    client.scope["headers"] = [(b"content-length", length)]

    assert await served(client) == 200
