"""Counts this web process's own HTTP answers. Knows nothing about engines."""

import time
from collections.abc import Awaitable, Callable

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest, HttpResponseBase
from django.utils.decorators import sync_and_async_middleware
from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics

disable_created_metrics()  # type: ignore[no-untyped-call] # it has no types
registry = CollectorRegistry(auto_describe=False)
_requests = Counter(
    "tierscope_http_requests_total",
    "HTTP requests answered by this web process, by view and status code.",
    ["method", "view", "status"],
    registry=registry,
)
_seconds = Histogram(
    "tierscope_http_request_seconds",
    "Seconds until the answer began (a stream goes on after that), by view.",
    ["view"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
    registry=registry,
)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


@sync_and_async_middleware
def http_metrics_middleware(
    get_response: Callable[[HttpRequest], HttpResponseBase | Awaitable[HttpResponseBase]],
) -> Callable[[HttpRequest], HttpResponseBase | Awaitable[HttpResponseBase]]:
    if iscoroutinefunction(get_response):

        async def asynchronous(request: HttpRequest) -> HttpResponseBase:
            started_at = time.perf_counter()
            response: HttpResponseBase = await get_response(request)
            _count(request, response, time.perf_counter() - started_at)
            return response

        return asynchronous

    def synchronous(request: HttpRequest) -> HttpResponseBase:
        started_at = time.perf_counter()
        response = get_response(request)
        _count(request, response, time.perf_counter() - started_at)  # type: ignore[arg-type] # synchronous here
        return response  # type: ignore[return-value] # synchronous here

    return synchronous


def _count(request: HttpRequest, response: HttpResponseBase, seconds: float) -> None:
    """Labels are bounded: views by name, never paths; methods that HTTP knows."""
    match = request.resolver_match
    view = (match.view_name or match.route or "unnamed") if match else "none"
    method = request.method if request.method in _METHODS else "other"
    _requests.labels(method, view, str(response.status_code)).inc()
    _seconds.labels(view).observe(seconds)
