"""The admin as part of the product: its names, its order, and the tier panel on its first page."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.template.response import TemplateResponse

from dashboard.selectors.tier_states import panel

# The order of a day's work; what is not named here comes after, by name.
_MODEL_ORDER = [
    "TierSetting",
    "TierChange",
    "Source",
    "Discovery",
    "Mapping",
    "Backfill",
    "AlertRule",
    "Webhook",
    "Prediction",
    "Prices",
    "ApiKey",
    "ReadToken",
    "Retention",
    "RequestLog",
    "Series",
]


class TierscopeAdminSite(admin.AdminSite):
    site_header = "Tierscope admin"
    site_title = "Tierscope admin"
    index_title = "Tiers and settings"
    site_url = "/"
    empty_value_display = "–"

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        may_view = request.user.has_perm("dashboard.view_tiersetting")
        context = {"tier_panel": panel()} if may_view else {}
        return super().index(request, {**context, **(extra_context or {})})

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        apps = super().get_app_list(request, app_label)
        for app in apps:
            app["models"].sort(key=lambda model: _rank(model["object_name"]))
        return sorted(apps, key=lambda app: app["app_label"] != "dashboard")


def _rank(object_name: str) -> int:
    return _MODEL_ORDER.index(object_name) if object_name in _MODEL_ORDER else len(_MODEL_ORDER)
