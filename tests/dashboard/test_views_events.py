"""`/events` forwards what is recorded as it happens, and ends cleanly where Valkey is gone."""

import asyncio
from collections.abc import AsyncIterator
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
    async for chunk in response.streaming_content:
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


async def test_a_stranger_hears_nothing() -> None:
    response = await events(asked_by(AnonymousUser()))
    assert response.status_code == 401


async def test_without_valkey_the_stream_says_so_and_ends(settings: Any, tmp_path: Any) -> None:
    settings.REDIS_URL = f"unix://{tmp_path}/nobody.sock"
    names.forget_clients()
    chunks = [chunk async for chunk in stream_of(User(username="ada"))]
    names.forget_clients()
    assert chunks[-1].startswith("event: lost")
