"""Where numbers are read from, and how that goes."""

from django.contrib import admin
from django.http import HttpRequest
from django.utils import timezone

from dashboard.forms import SourceForm
from dashboard.models import Source
from dashboard.selectors.source_states import state_of


@admin.register(Source)
class SourceAdmin(admin.ModelAdmin[Source]):
    form = SourceForm
    list_display = ["name", "kind", "url", "every", "state", "last_ok_at", "took", "last_num_samples", "problem"]
    list_filter = ["kind", "is_enabled"]
    search_fields = ["name", "url"]
    fieldsets = [
        (None, {"fields": ["name", "kind", "url", "interval_seconds", "is_enabled"]}),
        (
            "How it goes",
            {"fields": ["state", "last_scraped_at", "last_ok_at", "took", "last_num_samples", "problem"]},
        ),
    ]
    readonly_fields = ["state", "last_scraped_at", "last_ok_at", "took", "last_num_samples", "problem"]

    def has_delete_permission(self, request: HttpRequest, obj: Source | None = None) -> bool:
        """The embedded engines' source is part of the product, and its series with it."""
        is_embedded = obj is not None and obj.kind == Source.Kind.EMBEDDED
        return not is_embedded and super().has_delete_permission(request, obj)

    @admin.display(description="every", ordering="interval_seconds")
    def every(self, source: Source) -> str:
        return f"{source.interval_seconds} s"

    @admin.display(description="state")
    def state(self, source: Source) -> str:
        return state_of(source, timezone.now()).value

    @admin.display(description="took", ordering="last_duration_seconds", empty_value="–")
    def took(self, source: Source) -> str | None:
        seconds = source.last_duration_seconds
        return None if seconds is None else f"{seconds * 1000:,.0f} ms"

    @admin.display(description="last error", empty_value="–")
    def problem(self, source: Source) -> str:
        return source.last_error
