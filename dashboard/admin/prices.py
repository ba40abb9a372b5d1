"""What memory and computing cost: one row, so its list is its form. Nothing is filled in."""

from django.contrib import admin

from dashboard.admin.one_row import OneRowAdmin
from dashboard.models import Prices


@admin.register(Prices)
class PricesAdmin(OneRowAdmin[Prices]):
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
