"""Mappings of metrics texts that no table knows: typed in rows, and tried against an address before they are saved."""

from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied, ValidationError
from django.forms.models import inlineformset_factory
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path

from dashboard.forms_sources import MappingForm, MappingRowForm, MappingRowFormSet
from dashboard.models import Mapping, MappingRow
from dashboard.services.source_trial import Trial, try_mapping
from dashboard.services.sources import check_url, mapping_changed
from dashboard.sources.adapter import HIT_TIERS
from dashboard.sources.typed import adapter_of

_Rows: Any = inlineformset_factory(Mapping, MappingRow, form=MappingRowForm, formset=MappingRowFormSet)


class RowInline(admin.TabularInline[MappingRow, Mapping]):
    model = MappingRow
    form = MappingRowForm
    formset: Any = MappingRowFormSet
    extra = 3


@admin.register(Mapping)
class MappingAdmin(admin.ModelAdmin[Mapping]):
    form = MappingForm
    inlines = (RowInline,)
    list_display = ["name", "num_rows", "used_by"]
    change_form_template = "admin/dashboard/mapping/change_form.html"

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        if change and (form.has_changed() or any(formset.has_changed() for formset in formsets)):
            mapping_changed(form.instance)

    def get_urls(self) -> list[URLPattern]:
        return [
            path("try/", self.admin_site.admin_view(self.try_view), name="dashboard_mapping_try"),
            *super().get_urls(),
        ]

    def try_view(self, request: HttpRequest) -> HttpResponse:
        """What the rows of the form, saved or not, make of an address now. A POST: this server calls another one."""
        if request.method != "POST" or not (self.has_add_permission(request) or self.has_change_permission(request)):
            raise PermissionDenied
        trial = _tried(request)
        context = {
            **self.admin_site.each_context(request),
            "title": "What the mapping makes of it now",
            "opts": self.opts,
            "trial": trial,
            "tiers": [str(tier) for tier in HIT_TIERS],
        }
        return TemplateResponse(request, "admin/dashboard/mapping/trial.html", context)

    @admin.display(description="rows")
    def num_rows(self, mapping: Mapping) -> int:
        return mapping.rows.count()

    @admin.display(description="used by")
    def used_by(self, mapping: Mapping) -> str:
        num_sources = mapping.sources.count()
        return f"{num_sources:,} source" if num_sources == 1 else f"{num_sources:,} sources"


def _tried(request: HttpRequest) -> Trial:
    rows = _Rows(request.POST, instance=_saved(request), prefix="rows")
    url = request.POST.get("try_url", "").strip()
    try:
        check_url(url)
    except ValidationError as error:
        return Trial("", (), tuple(error.messages))
    if not rows.is_valid():
        return Trial("", (), tuple(_problems(rows)))
    typed = adapter_of(
        rows.typed_rows,
        engine_label=request.POST.get("engine_label", ""),
        model_label=request.POST.get("model_label", ""),
        is_complete="is_complete" in request.POST,
    )
    return try_mapping(url, typed)


def _saved(request: HttpRequest) -> Mapping:
    """The mapping whose rows the form shows; a new one where it is being added."""
    pk = request.POST.get("rows-0-mapping", "")
    found = Mapping.objects.filter(pk=int(pk)).first() if pk.isdecimal() else None
    return found or Mapping()


def _problems(rows: Any) -> list[str]:
    of_rows = [
        f"Row {number}: {problem}"
        for number, errors in enumerate(rows.errors, start=1)
        for problems in errors.values()
        for problem in problems
    ]
    return [*of_rows, *map(str, rows.non_form_errors())]
