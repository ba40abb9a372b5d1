"""`/events` forwards what is recorded as it happens, and ends cleanly where Valkey is gone."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.http import HttpRequest
from django.test import AsyncRequestFactory

from dashboard import valkey as names
from dashboard.views.events import events


def asked_by(user: User | AnonymousUser) -> HttpRequest:
    request = AsyncRequestFactory().get("/events")

    async def auser() -> User | AnonymousUser:
        return user

    request.auser = auser
    return request


async def stream_of(user: User) -> AsyncIterator[str]:
    response: Any = await events(asked_by(user))
    assert response["Content-Type"] == "text/event-stream"
    async with aclosing(response.streaming_content) as chunks:
        async for chunk in chunks:
            yield chunk.decode()


async def following(stream: AsyncIterator[str]) -> str:
    return await asyncio.wait_for(anext(stream), 10)


@pytest.mark.usefixtures("valkey")
async def test_a_recording_is_told_to_whoever_listens() -> None:
    stream = stream_of(User(username="ada"))
    assert "retry" in await following(stream)
    assert "event: hello" in await following(stream)
    assert await names.async_client().publish(names.TICK_CHANNEL, "1") == 1
    assert "event: tick" in await following(stream)
    await names.async_client().aclose()


@pytest.mark.usefixtures("valkey")
async def test_one_page_too_many_is_told_so_and_requests_still_reach_valkey(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "MAX_EVENT_STREAMS", 3)
    streams = [stream_of(User(username="ada")) for _ in range(3)]
    for stream in streams:
        await following(stream)
        assert "event: hello" in await following(stream)
    refused = await events(asked_by(User(username="ada")))
    assert refused.status_code == 503
    assert "3 pages listen already" in refused.content.decode()
    assert await names.async_client().ping()

    await streams.pop().aclose()  # type: ignore[attr-defined]
    statuses = {503}
    for _ in range(500):  # the loop closes what Django wrapped a moment later
        statuses.add((await events(asked_by(User(username="ada")))).status_code)
        if 200 in statuses:
            break
        await asyncio.sleep(0.01)
    assert 200 in statuses
    for stream in streams:
        await stream.aclose()  # type: ignore[attr-defined]


@pytest.mark.usefixtures("valkey")
async def test_as_many_requests_as_may_wait_each_have_a_connection() -> None:
    client = names.async_client()
    pool = client.connection_pool
    held = [await pool.get_connection() for _ in range(150)]  # type: ignore[no-untyped-call]
    assert await client.ping()
    for connection in held:
        await pool.release(connection)
    await client.aclose()


async def test_a_stranger_hears_nothing() -> None:
    response = await events(asked_by(AnonymousUser()))
    assert response.status_code == 401


async def test_without_valkey_the_stream_says_so_and_ends(settings: Any, tmp_path: Any) -> None:
    settings.REDIS_URL = f"unix://{tmp_path}/nobody.sock"
    names.forget_clients()
    chunks = [chunk async for chunk in stream_of(User(username="ada"))]
    names.forget_clients()
    assert chunks[-1].startswith("event: lost")
