"""The stream of one run's events: in order, each once, a gap noticed, silence told."""

from typing import Any

import pytest
import redis
import redis.asyncio

from dashboard import valkey as names
from dashboard.streams import StreamLostError, StreamWriter, read

pytestmark = pytest.mark.usefixtures("valkey")


async def collect(run_id: str, count: int) -> list[Any]:
    events: list[Any] = []
    async for event in read(names.async_client(), run_id, block_seconds=0.05):
        events.append(event)
        if len(events) == count:
            return events
    raise AssertionError("unreachable")


async def test_events_are_read_in_the_order_they_were_written() -> None:
    writer = StreamWriter(names.client(), "a")
    for number in range(2500):
        writer.write({"type": "token", "number": number})

    assert [event["number"] for event in await collect("a", 2500)] == list(range(2500))


async def test_a_reader_that_comes_early_hears_silence_and_then_the_events() -> None:
    assert await collect("b", 2) == [None, None]
    StreamWriter(names.client(), "b").write({"type": "done"})
    assert await collect("b", 1) == [{"type": "done"}]


async def test_an_event_that_was_written_twice_is_read_once() -> None:
    writer = StreamWriter(names.client(), "c")
    writer.write({"type": "one"})
    key = names.stream_key("c")
    connection: Any = names.client()
    _, fields = connection.xrange(key)[0]
    connection.xadd(key, fields)
    writer.write({"type": "two"})

    assert await collect("c", 2) == [{"type": "one"}, {"type": "two"}]


async def test_a_stream_that_forgot_events_is_lost() -> None:
    writer = StreamWriter(names.client(), "d")
    writer.write({"type": "one"})
    names.client().delete(names.stream_key("d"))
    writer.write({"type": "two"})

    with pytest.raises(StreamLostError, match="event 0"):
        await collect("d", 1)


async def test_an_unreachable_valkey_reads_as_silence() -> None:
    nowhere = redis.asyncio.Redis.from_url("unix:///nowhere.sock", decode_responses=True)
    async for event in read(nowhere, "e", block_seconds=0.01):
        assert event is None
        break


def test_every_write_renews_the_time_to_live() -> None:
    writer = StreamWriter(names.client(), "f")
    writer.write({"type": "one"})
    names.client().persist(names.stream_key("f"))
    writer.write({"type": "two"})

    assert 0 < names.client().ttl(names.stream_key("f")) <= names.STREAM_TTL_SECONDS


def test_a_writer_gives_up_after_eight_seconds_without_valkey() -> None:
    waited: list[float] = []
    nowhere = redis.Redis.from_url("unix:///nowhere.sock")
    writer = StreamWriter(nowhere, "g", sleep=waited.append)

    with pytest.raises(redis.ConnectionError):
        writer.write({"type": "one"})
    assert 7 < sum(waited) < 9
