"""Lists of targets that others keep, and how reading them goes."""

from typing import Any

from django.contrib import admin
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone

from dashboard.admin.sources import ACCESS
from dashboard.charts.words import ago
from dashboard.forms_sources import DiscoveryForm
from dashboard.models import Discovery

_TYPED = (
    *("name", "kind", "location", "selector"),
    *("source_kind", "mapping", "interval_seconds", "refresh_seconds", "is_enabled"),
)
_HEALTH = ("state", "targets", "gone")


@admin.register(Discovery)
class DiscoveryAdmin(admin.ModelAdmin[Discovery]):
    form = DiscoveryForm
    list_display = ["name", "kind", "location", "state", "targets", "gone"]
    readonly_fields = _HEALTH

    def get_queryset(self, request: HttpRequest) -> QuerySet[Discovery]:
        gone = Count("sources", filter=Q(sources__gone_at__isnull=False))
        return super().get_queryset(request).annotate(num_gone=gone)

    def get_fieldsets(self, request: HttpRequest, obj: Discovery | None = None) -> Any:
        access = ("Token, headers, certificates", {"fields": ACCESS, "classes": ["collapse"]})
        health = [("How it goes", {"fields": _HEALTH})] if obj else []
        return [(None, {"fields": _TYPED}), access, *health]

    def save_model(self, request: HttpRequest, obj: Discovery, form: Any, change: bool) -> None:
        obj.due_at = timezone.now()
        super().save_model(request, obj, form, change)

    @admin.display(description="state")
    def state(self, discovery: Discovery) -> str:
        return " ".join(filter(None, [_told(discovery), discovery.warning]))

    @admin.display(description="targets", ordering="last_num_targets")
    def targets(self, discovery: Discovery) -> str:
        return "–" if discovery.last_num_targets is None else f"{discovery.last_num_targets:,}"

    @admin.display(description="gone")
    def gone(self, discovery: Any) -> str:
        return f"{discovery.num_gone:,}"


def _told(discovery: Discovery) -> str:
    read = f"Last read {ago((timezone.now() - discovery.last_ok_at).total_seconds())}." if discovery.last_ok_at else ""
    if not discovery.is_enabled:
        return "Switched off."
    if discovery.last_error:
        return f"{discovery.last_error} {read or 'Never read well.'}"
    return read or "Not tried yet: the worker reads it within seconds."
