"""Where numbers are read from, and how that goes."""

from datetime import datetime
from functools import partial
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.html import format_html

from dashboard import valkey
from dashboard.charts.words import duration
from dashboard.forms_sources import SourceForm
from dashboard.models import EngineKind, Series, Source
from dashboard.selectors.source_places import read_twice
from dashboard.selectors.source_states import describe, state_of
from dashboard.selectors.tier_states import UNKNOWN
from dashboard.services.removal import remove_sources
from dashboard.services.source_names import rename
from dashboard.services.source_trial import Trial, try_source
from dashboard.services.sources import start_over
from dashboard.sources.adapter import HIT_TIERS
from dashboard.zone import in_words

_TYPED = ("name", "kind", "mapping", "url", "selector", "interval_seconds", "is_enabled")
_OF_WATCHED = ("mapping", "url", "selector")
ACCESS = (
    *("typed_token", "typed_headers", "tls_ca", "tls_server_name", "tls_cert", "typed_key"),
    *("forget", "tls_is_unchecked"),
)
_COSTS = ("typed_prefill", "typed_loads")
_COSTS_TEXT = "Seconds and dollars on the page What if, where the engine does not tell what computing and loading take."
_REMOVAL_SECONDS = 2  # of a page's time: most sources are gone by then, of the rest the worker takes care
_HEALTH = ("state", "last_tried", "last_read", "took", "samples", "remarks")


@admin.register(Source)
class SourceAdmin(admin.ModelAdmin[Source]):
    form = SourceForm
    list_display = ["name", "state", "read_kind", "url", "every", "last_tried", "took", "samples"]
    list_filter = ["kind", "discovery"]
    search_fields = ["name", "url", "selector"]
    list_select_related = ["discovery"]
    change_form_template = "admin/dashboard/source/change_form.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Source]:
        """What is read; replays have a page of their own."""
        return super().get_queryset(request).exclude(kind=Source.Kind.REPLAY).filter(removed_at=None)

    def get_readonly_fields(self, request: HttpRequest, obj: Source | None = None) -> tuple[str, ...]:
        is_embedded = obj is not None and obj.kind == Source.Kind.EMBEDDED
        return (*_HEALTH, "kind") if is_embedded else _HEALTH

    def get_fieldsets(self, request: HttpRequest, obj: Source | None = None) -> Any:
        """There is nothing to say yet about a source that is being added; the embedded engines have no address."""
        costs = ("What it takes, for What if", {"fields": _COSTS, "classes": ["collapse"], "description": _COSTS_TEXT})
        access = ("Token, headers, certificates", {"fields": ACCESS, "classes": ["collapse"]})
        if obj is None:
            return [(None, {"fields": _TYPED}), access, costs]
        typed = [name for name in _TYPED if name not in _OF_WATCHED or obj.kind != Source.Kind.EMBEDDED]
        health = ("How it goes", {"fields": _HEALTH})
        return [(None, {"fields": typed}), *([access, costs] if "url" in typed else []), health]

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        """Asks a new address before Django's transaction begins: a slow server would hold SQLite's one writer."""
        if request.method == "POST":
            request.refusal = self._asked(request, object_id)  # type: ignore[attr-defined] # get_form hands it on
        return super().changeform_view(request, object_id, form_url, extra_context)

    def _asked(self, request: HttpRequest, object_id: str | None) -> str:
        source = self.get_object(request, unquote(object_id)) if object_id else None
        is_change = source is not None
        may = self.has_change_permission(request, source) if object_id else self.has_add_permission(request)
        if not may or (object_id and not is_change):
            return ""  # Django's own view refuses it
        form = self.get_form(request, source, change=is_change)(request.POST, instance=source)
        return form.asked() if form.is_valid() else ""

    def get_form(self, request: HttpRequest, obj: Source | None = None, change: bool = False, **kwargs: Any) -> Any:
        form: Any = super().get_form(request, obj, change=change, **kwargs)  # a class of this request's own
        form.refusal = getattr(request, "refusal", "")
        return form

    def save_model(self, request: HttpRequest, obj: Source, form: SourceForm, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if change and {"url", "selector", "kind", "mapping"} & set(form.changed_data):
            start_over(obj)
        if change and "name" in form.changed_data:
            rename(obj, obj.name, before=form.initial["name"])
        if told := read_twice(obj):
            self.message_user(request, told, messages.WARNING)

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        return [
            path("try/", wrap(self.try_view), name="dashboard_source_try"),
            path("<int:source_id>/trial/", wrap(self.trial_view), name="dashboard_source_trial"),
            *super().get_urls(),
        ]

    def try_view(self, request: HttpRequest) -> HttpResponse:
        """What the add form as it is typed would read now. A POST: this server calls another one."""
        if request.method != "POST" or not self.has_add_permission(request):
            raise PermissionDenied
        return self._trial_page(request, "What it tells now", _tried(request))

    def trial_view(self, request: HttpRequest, source_id: int) -> HttpResponse:
        """Reads the source now. A POST only, since it makes this server call another one."""
        source = get_object_or_404(Source, pk=source_id)
        if request.method != "POST" or not self.has_change_permission(request, source):
            raise PermissionDenied
        trial = try_source(source, now=timezone.now(), connection=valkey.client())
        return self._trial_page(request, f"What {source.name} tells now", trial, source)

    def _trial_page(self, request: HttpRequest, title: str, trial: Trial, source: Source | None = None) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "title": title,
            "opts": self.opts,
            "source": source,
            "trial": trial,
            "tiers": [str(tier) for tier in HIT_TIERS],
        }
        return TemplateResponse(request, "admin/dashboard/source/trial.html", context)

    def has_delete_permission(self, request: HttpRequest, obj: Source | None = None) -> bool:
        """The embedded engines' source is part of the product, and its series with it."""
        is_embedded = obj is not None and obj.kind == Source.Kind.EMBEDDED
        return not is_embedded and super().has_delete_permission(request, obj)

    def delete_model(self, request: HttpRequest, obj: Source) -> None:
        """After the page's own transaction, which would keep every writer of a total waiting until the last bucket."""
        transaction.on_commit(partial(_remove, [obj]))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Source]) -> None:
        _remove(list(queryset))

    def get_deleted_objects(
        self, objs: Any, request: HttpRequest
    ) -> tuple[list[Any], dict[str, int], set[str], list[Any]]:
        """What goes with a source is counted, not listed: its buckets may be millions. The embedded one is safe."""
        sources = list(objs)
        num_series = Series.objects.filter(source__in=sources).count()
        lacking = set() if super().has_delete_permission(request) else {str(self.opts.verbose_name)}
        embedded: list[Any] = [source for source in sources if source.kind == Source.Kind.EMBEDDED]
        return [str(x) for x in sources], {"sources": len(sources), "series": num_series}, lacking, embedded

    @admin.display(description="kind", ordering="kind")
    def read_kind(self, source: Source) -> str:
        """What was detected, where something was."""
        label = str(EngineKind(source.read_as).label)
        return label if source.read_as == source.kind else f"{label} (detected)"

    @admin.display(description="every", ordering="interval_seconds")
    def every(self, source: Source) -> str:
        return f"{source.interval_seconds} s"

    @admin.display(description="state")
    def state(self, source: Source) -> str:
        now = timezone.now()
        return format_html(
            '<span class="source-state" data-state="{0}"><b>{0}</b> <small>{1}</small></span>',
            state_of(source, now),
            describe(source, now),
        )

    @admin.display(description="last tried")
    def last_tried(self, source: Source) -> str:
        return _when(source.last_scraped_at)

    @admin.display(description="last read well")
    def last_read(self, source: Source) -> str:
        return _when(source.last_ok_at)

    @admin.display(description="samples", ordering="last_num_samples")
    def samples(self, source: Source) -> str:
        return UNKNOWN if source.last_num_samples is None else f"{source.last_num_samples:,}"

    @admin.display(description="took", ordering="last_duration_seconds")
    def took(self, source: Source) -> str:
        return duration(source.last_duration_seconds)

    @admin.display(description="remarks")
    def remarks(self, source: Source) -> str:
        """What was odd about a text that could be read; why one could not is in the state."""
        told = "" if source.last_error in describe(source, timezone.now()) else source.last_error
        return " ".join(filter(None, [told, read_twice(source)])) or "none"


def _remove(sources: list[Source]) -> None:
    remove_sources(sources, clock=timezone.now, seconds=_REMOVAL_SECONDS)


def _tried(request: HttpRequest) -> Trial:
    """Of what is typed, saved nowhere. How it will be called does not matter yet."""
    form = SourceForm(request.POST)
    del form.fields["name"]
    if form.is_valid():
        return try_source(form.instance, now=timezone.now(), connection=valkey.client())
    problems = (problem for of_field in form.errors.values() for problem in of_field)
    return Trial("", (), tuple(map(str, problems)))


def _when(moment: datetime | None) -> str:
    return in_words(moment) if moment else "never"
