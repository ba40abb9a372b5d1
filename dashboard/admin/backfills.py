"""Imports of history: asked for here, done by the worker piece by piece, with how far they are."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html

from dashboard.admin.sources import ACCESS
from dashboard.forms_sources import BackfillForm
from dashboard.models import Backfill
from dashboard.services.backfill import plan, stop, take_access

_TYPED = ("source", "url", "selector", "start_at", "end_at", "step_seconds")
_OWN_ACCESS = "Leave all of it empty where the source is read from the same server: what it is read with is sent."
_LIST = "admin:dashboard_backfill_changelist"


@admin.register(Backfill)
class BackfillAdmin(admin.ModelAdmin[Backfill]):
    form = BackfillForm
    fieldsets = (
        (None, {"fields": _TYPED}),
        ("Token, headers, certificates", {"fields": ACCESS, "classes": ["collapse"], "description": _OWN_ACCESS}),
    )
    list_display = ["source", "start_at", "end_at", "progress", "num_samples", "last_error"]
    list_display_links = None
    list_select_related = ["source"]
    actions = ("stop_them",)

    def has_change_permission(self, request: HttpRequest, obj: Backfill | None = None) -> bool:
        """What was asked for is not changed: it is stopped, and asked for anew."""
        return obj is None and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Backfill | None = None) -> bool:
        """It is what keeps the same time from being imported twice."""
        return False

    def save_model(self, request: HttpRequest, obj: Backfill, form: Any, change: bool) -> None:
        """Stored by the service, once for each stretch of time that nothing covers yet."""
        take_access(obj)
        form.planned = plan(obj, now=timezone.now())

    def log_addition(self, request: HttpRequest, obj: Backfill, message: Any) -> Any:
        return super().log_addition(request, obj, message) if obj.pk else None

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        if form.planned:
            form.instance.pk = form.planned[-1].pk

    def response_add(self, request: HttpRequest, obj: Backfill, post_url_continue: str | None = None) -> HttpResponse:
        if obj.pk:
            self.message_user(request, "The worker imports it; this page shows how far it is.", messages.SUCCESS)
        else:
            told = "Nothing was added: all of it is there already, imported or seen live, or still to come."
            self.message_user(request, told, messages.WARNING)
        return HttpResponseRedirect(reverse(_LIST))

    @admin.action(description="Stop where they are", permissions=["change"])
    def stop_them(self, request: HttpRequest, chosen: QuerySet[Backfill]) -> None:
        going_on = [backfill for backfill in chosen if not backfill.is_done]
        for backfill in going_on:
            stop(backfill)
        self.message_user(request, f"{len(going_on)} stopped; what they imported stays.", messages.SUCCESS)

    @admin.display(description="progress")
    def progress(self, backfill: Backfill) -> str:
        if backfill.start_at == backfill.end_at:
            return "stopped before anything"
        return format_html(
            '<progress max="100" value="{0}" aria-label="imported"></progress> {0} %', int(100 * backfill.share)
        )
