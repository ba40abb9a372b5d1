"""Who changed which tier, when."""

from django.contrib import admin

from dashboard.admin.read_only import ReadOnlyMixin
from dashboard.models import TierChange


@admin.register(TierChange)
class TierChangeAdmin(ReadOnlyMixin, admin.ModelAdmin[TierChange]):
    list_display = ["at", "engine", "cache_tier", "action", "before", "after", "by"]
    list_filter = ["engine", "cache_tier", "action", "author"]
    list_select_related = ["author"]
    date_hierarchy = "at"
    list_per_page = 50

    @admin.display(description="before")
    def before(self, change: TierChange) -> str:
        return change.old_value

    @admin.display(description="after")
    def after(self, change: TierChange) -> str:
        return change.new_value or ("waiting for the engine" if change.action == "clear" else "")

    @admin.display(description="author", ordering="author")
    def by(self, change: TierChange) -> str:
        return change.author.get_username() if change.author else "deleted user"
