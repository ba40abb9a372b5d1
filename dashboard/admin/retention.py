"""How long things are kept: one row, so its list is its form."""

from django.contrib import admin

from dashboard.admin.one_row import OneRowAdmin
from dashboard.forms import RetentionForm
from dashboard.models import Retention


@admin.register(Retention)
class RetentionAdmin(OneRowAdmin[Retention]):
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
