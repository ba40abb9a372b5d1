"""What memory and computing cost: one row, so its list is its form. Nothing is filled in."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from dashboard.models import Prices


@admin.register(Prices)
class PricesAdmin(admin.ModelAdmin[Prices]):
    fieldsets = [
        (
            "Memory",
            {
                "fields": ["gpu_gib_month", "cpu_gib_month", "disk_gib_month", "remote_gib_month"],
                "description": "The what-if page shows what a month costs where a price is typed. Empty is not 0: what "
                "has no price is in no bill, and no size of it is advised.",
            },
        ),
        ("Computing", {"fields": ["gpu_hour"]}),
    ]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        if not self.has_view_permission(request):
            return super().changelist_view(request, extra_context)  # refuses in the admin's own way
        row, _ = Prices.objects.get_or_create(pk=1)
        return HttpResponseRedirect(reverse("admin:dashboard_prices_change", args=[row.pk]))

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Prices | None = None) -> bool:
        return False
