"""The request log, page by page, newest first. Reads only."""

from dataclasses import dataclass

from django.db.models import Min

from dashboard.models import RequestLog
from dashboard.tenants import COMMON

MAX_PAGE_SIZE = 200
MAX_NUMBER = 1000  # a later page would read through everything before it


@dataclass(frozen=True)
class RequestPage:
    rows: list[RequestLog]
    number: int
    has_next: bool


def oldest_request_at() -> float | None:
    """When the oldest request that is kept was answered, Unix seconds; None where there is none."""
    oldest = RequestLog.objects.aggregate(at=Min("finished_at"))["at"]
    return oldest.timestamp() if oldest else None


def request_page(
    number: int = 1,
    *,
    size: int = 50,
    engine: str | None = None,
    model_name: str | None = None,
    slowest_tier: str | None = None,
    tenant: str | None = None,
) -> RequestPage:
    """Page `number` (from 1; out of range is brought into it, also behind the last) of at most `size` requests.

    `slowest_tier` keeps those whose slowest read was from that tier; "none" those that read from no tier. `tenant` is
    named as pages do: "common" keeps those without one.
    """
    number = min(max(number, 1), MAX_NUMBER)
    size = min(max(size, 1), MAX_PAGE_SIZE)
    rows = RequestLog.objects.select_related("api_key").order_by("-finished_at", "-pk")
    if engine:
        rows = rows.filter(engine=engine)
    if model_name:
        rows = rows.filter(model_name=model_name)
    if slowest_tier:
        rows = rows.filter(slowest_tier="" if slowest_tier == "none" else slowest_tier)
    if tenant:
        rows = rows.filter(tenant="" if tenant == COMMON else tenant)
    found = list(rows[(number - 1) * size : number * size + 1])
    if not found and number > 1:
        number = min(max(-(-rows.count() // size), 1), MAX_NUMBER)
        found = list(rows[(number - 1) * size : number * size + 1])
    return RequestPage(found[:size], number, has_next=len(found) > size and number < MAX_NUMBER)
