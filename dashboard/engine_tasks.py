"""The engine worker's task: one request, from the job in Valkey to the last event of its stream."""

from celery import Task, shared_task

from dashboard import valkey
from dashboard.engine_relay import serve
from dashboard.jobs import TASK


class _Unacknowledged(Task):  # type: ignore[type-arg] # generic in its stubs only
    Request = "dashboard.engine_worker:Taken"


@shared_task(name=TASK, ignore_result=True, base=_Unacknowledged)
def generate(*, run_id: str) -> None:
    """Sent to `engine.<name>` by services/dispatch.py; a job that was withdrawn or taken is a normal outcome."""
    from dashboard.engine_hosting import current_host

    serve(current_host(), run_id, valkey.client())
