"""How long things are kept: one row, so its list is its form."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from dashboard.forms import RetentionForm
from dashboard.models import Retention


@admin.register(Retention)
class RetentionAdmin(admin.ModelAdmin[Retention]):
    form = RetentionForm
    fieldsets = [
        (
            "Series",
            {
                "fields": ["ten_seconds_hours", "minutes_days", "hours_days", "days_years"],
                "description": "Older data is kept in coarser buckets; sums stay exact at every resolution.",
            },
        ),
        ("Request log", {"fields": ["requests_days", "requests_rows"], "description": "Whichever is reached first."}),
    ]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        if not self.has_view_permission(request):
            return super().changelist_view(request, extra_context)  # refuses in the admin's own way
        row, _ = Retention.objects.get_or_create(pk=1)
        return HttpResponseRedirect(reverse("admin:dashboard_retention_change", args=[row.pk]))

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Retention | None = None) -> bool:
        return False
