"""What was recorded: answered requests and series. Buckets are only seen through the charts."""

from collections.abc import Callable

from django.contrib import admin
from django.utils.html import format_html

from dashboard.admin.read_only import ReadOnlyMixin
from dashboard.charts.words import duration
from dashboard.models import RequestLog, Series

_SHORT = 8  # characters of a request's id: two of a page sharing them is one in millions
_TOKENS = {
    "prompt_tokens": "prompt",
    "hit_gpu_tokens": "hit gpu",
    "hit_cpu_tokens": "hit cpu",
    "hit_disk_tokens": "hit disk",
    "hit_remote_tokens": "hit remote",
    "computed_tokens": "computed",
    "generated_tokens": "generated",
}


def _column(field: str, words: str) -> Callable[[RequestLog], str]:
    """A count under a heading that is narrow: all of them fit on a laptop."""

    @admin.display(description=words, ordering=field)
    def shown(request_log: RequestLog) -> str:
        return f"{getattr(request_log, field):,}"

    shown.__name__ = field
    return shown


@admin.register(RequestLog)
class RequestLogAdmin(ReadOnlyMixin, admin.ModelAdmin[RequestLog]):
    list_display = [
        "finished_at",
        "short_id",
        "engine",
        "model_name",
        "tenant",
        *(_column(field, words) for field, words in _TOKENS.items()),
        "ttft",
        "finish_reason",
    ]
    list_filter = ["engine", "model_name", "slowest_tier", "finish_reason", "api_key", "tenant"]
    list_select_related = ["api_key"]
    search_fields = ["^request_id"]  # a request that was run again has a second row, <id>.2
    date_hierarchy = "finished_at"
    list_per_page = 50
    show_full_result_count = False

    @admin.display(description="request", ordering="request_id")
    def short_id(self, request_log: RequestLog) -> str:
        whole = request_log.request_id
        return format_html(
            '<span title="{}">{}</span>', whole, whole if len(whole) <= _SHORT else f"…{whole[-_SHORT:]}"
        )

    @admin.display(description="TTFT", ordering="ttft_seconds")
    def ttft(self, request_log: RequestLog) -> str:
        return duration(request_log.ttft_seconds)


@admin.register(Series)
class SeriesAdmin(ReadOnlyMixin, admin.ModelAdmin[Series]):
    list_display = ["engine", "model_name", "metric", "cache_tier", "detail", "source"]
    list_filter = ["source", "metric", "cache_tier"]
    list_select_related = ["source"]
    search_fields = ["engine", "model_name"]
    ordering = ["engine", "model_name", "metric", "cache_tier", "detail"]
    list_per_page = 50
