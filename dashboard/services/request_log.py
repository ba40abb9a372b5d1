"""Writes the request log. A log that cannot be written is said in the worker's own log and fails no request."""

import logging
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from django.db import DatabaseError

from dashboard.jobs import Job
from dashboard.models import ApiKey, RequestLog

logger = logging.getLogger(__name__)


def log_request(job: Job, engine: str, done: Mapping[str, Any]) -> None:
    """`done` is the run's last event, with its usage."""
    try:
        RequestLog.objects.update_or_create(request_id=row_id(job), defaults=_fields(job, engine, done))
    except DatabaseError:
        logger.exception("request %s was answered, but is missing in the request log", job.request_id)


def row_id(job: Job) -> str:
    """A second run has a row of its own, `<request id>.2`: the engine counted both, and the log's sums say the same."""
    return job.request_id if job.attempt == 1 else job.run_id


def _fields(job: Job, engine: str, done: Mapping[str, Any]) -> dict[str, Any]:
    usage: Mapping[str, Any] = done["usage"]
    return {
        "engine": engine,
        "model_name": job.model,
        "api_key_id": _existing_key(job.api_key_id),
        "tenant": job.tenant,
        "received_at": datetime.fromtimestamp(job.received_at, UTC),
        "finished_at": datetime.fromtimestamp(time.time(), UTC),
        "prompt_tokens": usage["prompt_tokens"],
        **{f"hit_{tier}_tokens": tokens for tier, tokens in usage["hit_tokens"].items()},
        "computed_tokens": usage["computed_tokens"],
        "generated_tokens": usage["generated_tokens"],
        "slowest_tier": usage["slowest_tier"] or "",
        "ttft_seconds": usage["ttft_seconds"],
        "finish_reason": done["finish_reason"],
        "error": done["error"] or "",
    }


def _existing_key(api_key_id: int | None) -> int | None:
    """A key may be deleted while its last request runs."""
    if api_key_id is None or not ApiKey.objects.filter(pk=api_key_id).exists():
        return None
    return api_key_id
