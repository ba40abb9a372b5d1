"""A request on its way from the web process to an engine worker, and where it waits meanwhile.

A job is plain JSON under `ts:request:<run id>`; the message that Celery carries is that id. Taking it removes it, so
that a message which comes twice, or late, finds nothing to do. A request that is run again gets a new run id.
"""

import json
from dataclasses import dataclass, field
from typing import Any

import redis.asyncio

from dashboard import valkey
from dashboard.streams import Event, StreamWriter
from dashboard.task_messages import task_message

TASK = "dashboard.engine_tasks.generate"


@dataclass(frozen=True)
class Job:
    """Exactly one of `messages`, `prompt` and `prompt_token_ids` is set."""

    request_id: str
    model: str
    sampling: dict[str, Any]
    received_at: float  # Unix seconds
    messages: list[dict[str, str]] | None = None
    prompt: str | None = None
    prompt_token_ids: list[int] | None = None
    return_prompt_tokens: bool = False
    api_key_id: int | None = None
    tenant: str = ""
    cache_salt: str = ""
    attempt: int = field(default=1)

    @property
    def run_id(self) -> str:
        return f"{self.request_id}.{self.attempt}"


def job_key(run_id: str) -> str:
    return f"{valkey.PREFIX}request:{run_id}"


async def put(connection: redis.asyncio.Redis, job: Job, engine: str, *, ttl_seconds: int) -> None:
    """Lays the job down and tells the engine's workers, in one round trip. Raises redis.RedisError."""
    queue = valkey.engine_queue(engine)
    # Not asdict: it copies number by number, a second and more for a million token ids, while everybody waits.
    async with connection.pipeline(transaction=False) as pipeline:
        pipeline.set(job_key(job.run_id), json.dumps(vars(job)), ex=ttl_seconds)
        pipeline.lpush(queue, task_message(TASK, queue, job.run_id, run_id=job.run_id))
        await pipeline.execute()


def take(writer: StreamWriter, run_id: str, started: Event) -> Job | None:
    """The job, once, with `started` written as its first event; None when it was taken, withdrawn or has expired."""
    text = writer.begin(job_key(run_id), started)
    return Job(**json.loads(text)) if text else None
