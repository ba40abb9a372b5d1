"""A model of one row: its list is its form. Knows nothing about what the row says."""

from typing import Any, TypeVar

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

M = TypeVar("M", bound=Model)


class OneRowAdmin(admin.ModelAdmin[M]):
    """The row is made with its defaults when somebody first looks."""

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        if not self.has_view_permission(request):
            return super().changelist_view(request, extra_context)  # refuses in the admin's own way
        row, _ = self.model._default_manager.get_or_create(pk=1)
        return HttpResponseRedirect(reverse(f"admin:dashboard_{self.opts.model_name}_change", args=[row.pk]))

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        return False
