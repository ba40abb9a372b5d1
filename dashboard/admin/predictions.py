"""What was predicted each time sizes were applied from the what-if page, which compares the newest with what came."""

from django.contrib import admin

from dashboard.admin.read_only import ReadOnlyMixin
from dashboard.models import Prediction
from dashboard.sizes import format_size


@admin.register(Prediction)
class PredictionAdmin(ReadOnlyMixin, admin.ModelAdmin[Prediction]):
    list_display = ["at", "engine", "author", "applied", "hit_rate"]
    list_filter = ["engine"]
    list_select_related = ["author"]
    date_hierarchy = "at"

    @admin.display(description="sizes")
    def applied(self, prediction: Prediction) -> str:
        return ", ".join(f"{tier} {format_size(size)}" for tier, size in prediction.sizes.items())

    @admin.display(description="predicted hit rate")
    def hit_rate(self, prediction: Prediction) -> str:
        return f"{100 * sum(prediction.predicted['hit'].values()):.1f} %"
