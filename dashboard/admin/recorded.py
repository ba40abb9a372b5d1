"""What was recorded: answered requests and series. Buckets are only seen through the charts."""

from django.contrib import admin

from dashboard.admin.read_only import ReadOnlyMixin
from dashboard.models import RequestLog, Series


@admin.register(RequestLog)
class RequestLogAdmin(ReadOnlyMixin, admin.ModelAdmin[RequestLog]):
    list_display = [
        "finished_at",
        "request_id",
        "engine",
        "model_name",
        "tenant",
        "prompt_tokens",
        "hit_gpu_tokens",
        "hit_cpu_tokens",
        "hit_disk_tokens",
        "hit_remote_tokens",
        "computed_tokens",
        "generated_tokens",
        "ttft",
        "finish_reason",
    ]
    list_filter = ["engine", "model_name", "slowest_tier", "finish_reason", "api_key", "tenant"]
    list_select_related = ["api_key"]
    search_fields = ["=request_id"]
    date_hierarchy = "finished_at"
    list_per_page = 50
    show_full_result_count = False

    @admin.display(description="TTFT", ordering="ttft_seconds")
    def ttft(self, request_log: RequestLog) -> str | None:
        seconds = request_log.ttft_seconds
        return None if seconds is None else f"{seconds * 1000:,.0f} ms"


@admin.register(Series)
class SeriesAdmin(ReadOnlyMixin, admin.ModelAdmin[Series]):
    list_display = ["engine", "model_name", "metric", "cache_tier", "detail", "source"]
    list_filter = ["source", "metric", "cache_tier"]
    list_select_related = ["source"]
    search_fields = ["engine", "model_name"]
    ordering = ["engine", "model_name", "metric", "cache_tier", "detail"]
    list_per_page = 50
