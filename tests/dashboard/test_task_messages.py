"""The message for a request's task: Celery's own, but for its ids and arguments."""

import base64
import json
from typing import Any, cast

from kombu import Connection, Producer

from dashboard.celery import app
from dashboard.task_messages import task_message

TASK = "dashboard.engine_tasks.generate"


def celerys_own(task_id: str, **kwargs: str) -> dict[str, Any]:
    with Connection("memory://") as connection, connection.channel() as channel:
        producer = Producer(channel)
        app.send_task(TASK, kwargs=kwargs, task_id=task_id, queue="engine.local", ignore_result=True, producer=producer)
        message: dict[str, Any] = cast(Any, channel)._get("engine.local")
        return message


def body(message: dict[str, Any]) -> Any:
    return json.loads(base64.b64decode(message["body"]))


def without(message: dict[str, Any], part: str, *names: str) -> dict[str, Any]:
    return {name: value for name, value in message[part].items() if name not in names}


def test_a_message_is_what_celery_itself_would_send() -> None:
    ours, own = json.loads(task_message(TASK, "engine.local", "r.1", run_id="r.1")), celerys_own("r.1", run_id="r.1")

    assert body(ours) == body(own)
    assert without(ours, "headers", "argsrepr", "kwargsrepr") == without(own, "headers", "argsrepr", "kwargsrepr")
    ids = ("delivery_tag", "reply_to", "argsrepr", "kwargsrepr")
    assert without(ours, "properties", *ids) == without(own, "properties", *ids)
    assert {name: ours[name] for name in own if name not in ("body", "headers", "properties")} == {
        name: own[name] for name in own if name not in ("body", "headers", "properties")
    }


def test_two_messages_differ_in_their_ids_and_arguments_only() -> None:
    first, second = (json.loads(task_message(TASK, "engine.local", run, run_id=run)) for run in ("a.1", "b.1"))

    assert (first["headers"]["id"], second["headers"]["id"]) == ("a.1", "b.1")
    assert first["properties"]["delivery_tag"] != second["properties"]["delivery_tag"]
    assert (body(first)[1], body(second)[1]) == ({"run_id": "a.1"}, {"run_id": "b.1"})
    assert without(first, "headers", "id", "root_id") == without(second, "headers", "id", "root_id")


def test_each_queue_has_its_own_address() -> None:
    messages = [json.loads(task_message(TASK, queue, "a.1", run_id="a.1")) for queue in ("engine.one", "engine.two")]

    assert [each["properties"]["delivery_info"]["routing_key"] for each in messages] == ["engine.one", "engine.two"]
