"""Who changed which tier, when."""

from django.contrib import admin
from django.utils.html import format_html

from dashboard.admin.read_only import ReadOnlyMixin
from dashboard.models import TierChange, TierSetting
from dashboard.selectors.resizes import factor, large_factor


@admin.register(TierChange)
class TierChangeAdmin(ReadOnlyMixin, admin.ModelAdmin[TierChange]):
    list_display = ["at", "engine", "cache_tier", "what", "before", "after", "factor", "by"]
    fields = ["at", "engine", "cache_tier", "what", "before", "after", "factor", "by"]
    readonly_fields = ("what", "before", "after", "factor", "by")
    list_filter = ["engine", "cache_tier", "action", "author"]
    list_select_related = ["author"]
    date_hierarchy = "at"
    list_per_page = 50

    @admin.display(description="change", ordering="action")
    def what(self, change: TierChange) -> str:
        return change.get_action_display()

    @admin.display(description="by how much")
    def factor(self, change: TierChange) -> str:
        """What changed a size by ten times or more stands out without colour: bold, with an arrow."""
        values = change.old_value, change.new_value
        return format_html("<b>{}</b>", large_factor(*values)) if large_factor(*values) else factor(*values)

    @admin.display(description="before")
    def before(self, change: TierChange) -> str:
        return _words(change.old_value)

    @admin.display(description="after")
    def after(self, change: TierChange) -> str:
        return _words(change.new_value) or ("waiting for the engine" if change.action == "clear" else "")

    @admin.display(description="author", ordering="author")
    def by(self, change: TierChange) -> str:
        return change.author.get_username() if change.author else "deleted user"


def _words(value: str) -> str:
    """ "s3fifo" → "S3-FIFO", "write_back" → "write back"; sizes and outcomes as they are."""
    return dict(TierSetting.Policy.choices).get(value, value.replace("_", " "))
