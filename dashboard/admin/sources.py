"""Where numbers are read from, and how that goes."""

from datetime import datetime
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone

from dashboard import valkey
from dashboard.forms import SourceForm
from dashboard.models import Series, Source
from dashboard.selectors.source_states import state_of
from dashboard.services.source_trial import try_source
from dashboard.services.sources import start_over
from dashboard.sources.adapter import HIT_TIERS

_HEALTH = ("state", "last_scraped", "last_ok", "took", "samples", "problem")


@admin.register(Source)
class SourceAdmin(admin.ModelAdmin[Source]):
    form = SourceForm
    list_display = ["name", "state", "kind", "url", "every", "last_ok", "took", "samples", "problem"]
    fieldsets = [
        (None, {"fields": ["name", "kind", "url", "interval_seconds", "is_enabled"]}),
        (
            "How it goes",
            {"fields": _HEALTH},
        ),
    ]
    change_form_template = "admin/dashboard/source/change_form.html"
    readonly_fields = _HEALTH

    def save_model(self, request: HttpRequest, obj: Source, form: SourceForm, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if change and {"url", "kind"} & set(form.changed_data):
            start_over(obj)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.trial_view)
        return [path("<int:source_id>/trial/", view, name="dashboard_source_trial"), *super().get_urls()]

    def trial_view(self, request: HttpRequest, source_id: int) -> HttpResponse:
        """Reads the source now. A POST only, since it makes this server call another one."""
        source = get_object_or_404(Source, pk=source_id)
        if request.method != "POST" or not self.has_change_permission(request, source):
            raise PermissionDenied
        now = timezone.now()
        context = {
            **self.admin_site.each_context(request),
            "title": f"What {source.name} tells now",
            "opts": self.opts,
            "source": source,
            "trial": try_source(source, now=now, connection=valkey.client()),
            "tiers": [str(tier) for tier in HIT_TIERS],
        }
        return TemplateResponse(request, "admin/dashboard/source/trial.html", context)

    def has_delete_permission(self, request: HttpRequest, obj: Source | None = None) -> bool:
        """The embedded engines' source is part of the product, and its series with it."""
        is_embedded = obj is not None and obj.kind == Source.Kind.EMBEDDED
        return not is_embedded and super().has_delete_permission(request, obj)

    def get_deleted_objects(
        self, objs: Any, request: HttpRequest
    ) -> tuple[list[Any], dict[str, int], set[str], list[Any]]:
        """What goes with a source is counted, not listed: its buckets may be millions. The embedded one is safe."""
        sources = list(objs)
        num_series = Series.objects.filter(source__in=sources).count()
        lacking = set() if super().has_delete_permission(request) else {str(self.opts.verbose_name)}
        embedded: list[Any] = [source for source in sources if source.kind == Source.Kind.EMBEDDED]
        return [str(x) for x in sources], {"sources": len(sources), "series": num_series}, lacking, embedded

    @admin.display(description="every", ordering="interval_seconds")
    def every(self, source: Source) -> str:
        return f"{source.interval_seconds} s"

    @admin.display(description="state")
    def state(self, source: Source) -> str:
        return state_of(source, timezone.now()).value

    @admin.display(description="last scraped")
    def last_scraped(self, source: Source) -> datetime | None:
        return source.last_scraped_at

    @admin.display(description="last well", ordering="last_ok_at")
    def last_ok(self, source: Source) -> datetime | None:
        return source.last_ok_at

    @admin.display(description="samples", ordering="last_num_samples")
    def samples(self, source: Source) -> int | None:
        return source.last_num_samples

    @admin.display(description="took", ordering="last_duration_seconds")
    def took(self, source: Source) -> str | None:
        seconds = source.last_duration_seconds
        return None if seconds is None else f"{seconds * 1000:,.0f} ms"

    @admin.display(description="last error", empty_value="none")
    def problem(self, source: Source) -> str:
        return source.last_error
