"""A request on its way from the web process to an engine worker, and where it waits meanwhile.

A job is plain JSON under `ts:request:<run id>`. Taking it removes it, so that a message which the broker delivers
twice, or late, finds nothing to do. A request that is run again gets a new run id.
"""

import json
from dataclasses import asdict, dataclass, field
from typing import Any

import redis

from dashboard import valkey


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


def put(connection: redis.Redis, job: Job, *, ttl_seconds: int) -> None:
    connection.set(job_key(job.run_id), json.dumps(asdict(job)), ex=ttl_seconds)


def take(connection: redis.Redis, run_id: str) -> Job | None:
    """The job, once; None when it was taken, withdrawn or has expired."""
    text = connection.getdel(job_key(run_id))
    return Job(**json.loads(str(text))) if text else None
