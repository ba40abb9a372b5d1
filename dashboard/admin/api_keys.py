"""API keys: made here, shown exactly once, revoked here."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.options import IS_POPUP_VAR
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from dashboard.models import ApiKey
from dashboard.services.api_keys import create_api_key


@admin.register(ApiKey)
class ApiKeyAdmin(admin.ModelAdmin[ApiKey]):
    list_display = ["name", "tenant", "shown_prefix", "is_active", "created_at", "last_used_at"]
    list_filter = ["is_active", "tenant"]
    search_fields = ["name", "tenant", "prefix"]
    actions = ["revoke"]

    def get_fields(self, request: HttpRequest, obj: ApiKey | None = None) -> Any:
        shown = ["name", "tenant", "shown_prefix", "is_active", "created_at", "last_used_at"]
        return shown if obj else ["name", "tenant"]

    def get_readonly_fields(self, request: HttpRequest, obj: ApiKey | None = None) -> list[str]:
        return ["shown_prefix", "created_at", "last_used_at"] if obj else []

    @admin.display(description="key", ordering="prefix")
    def shown_prefix(self, api_key: ApiKey) -> str:
        return f"{api_key.prefix}…"

    def save_model(self, request: HttpRequest, obj: ApiKey, form: ModelForm[ApiKey], change: bool) -> None:
        if change:
            super().save_model(request, obj, form, change)
            return
        stored, plain = create_api_key(obj.name, obj.tenant)
        obj.pk, obj.prefix, obj.hashed_key = stored.pk, stored.prefix, stored.hashed_key
        # On this request only: the key is in no session, cookie, log or message, and a reload cannot show it again.
        request.plain_api_key = plain  # type: ignore[attr-defined]

    def response_add(self, request: HttpRequest, obj: ApiKey, post_url_continue: str | None = None) -> HttpResponse:
        context: dict[str, Any] = {
            **self.admin_site.each_context(request),
            "title": f"API key {obj.name}",
            "opts": self.opts,
            "api_key": obj,
            "plain": request.plain_api_key,  # type: ignore[attr-defined]
            "is_popup": IS_POPUP_VAR in request.POST,
        }
        response = TemplateResponse(request, "admin/dashboard/apikey/created.html", context)
        response.headers["Cache-Control"] = "no-store"
        return response

    @admin.action(description="Revoke the selected keys", permissions=["change"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> None:
        num_revoked = queryset.filter(is_active=True).update(is_active=False)
        keys = "1 key was" if num_revoked == 1 else f"{num_revoked} keys were"
        self.message_user(request, f"{keys} revoked; requests with them are refused within a second.", messages.SUCCESS)
