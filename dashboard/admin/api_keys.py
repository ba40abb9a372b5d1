"""API keys and read tokens: made here, shown exactly once, revoked here."""

from typing import Any, ClassVar, TypeVar

from django.contrib import admin, messages
from django.contrib.admin.options import IS_POPUP_VAR
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.text import capfirst

from dashboard.models import ApiKey, ReadToken
from dashboard.services.api_keys import create_api_key, create_read_token

S = TypeVar("S", bound=ApiKey | ReadToken)


class SecretAdmin(admin.ModelAdmin[S]):
    """What both have in common. `noun` is what pages call one, `usage` a sentence about what it is for."""

    noun: ClassVar[str]
    usage: ClassVar[str]
    typed: ClassVar[list[str]] = ["name"]
    list_filter = ["is_active"]
    search_fields = ["name", "prefix"]
    actions = ["revoke"]

    def make(self, obj: S) -> tuple[S, str]:
        raise NotImplementedError

    def get_list_display(self, request: HttpRequest) -> Any:
        return [*self.typed, "shown_prefix", "is_active", "created_at", "last_used_at"]

    def get_fields(self, request: HttpRequest, obj: S | None = None) -> Any:
        return self.get_list_display(request) if obj else self.typed

    def get_readonly_fields(self, request: HttpRequest, obj: S | None = None) -> list[str]:
        return ["shown_prefix", "created_at", "last_used_at"] if obj else []

    @admin.display(description="begins with", ordering="prefix")
    def shown_prefix(self, secret: S) -> str:
        return f"{secret.prefix}…"

    def save_model(self, request: HttpRequest, obj: S, form: ModelForm[S], change: bool) -> None:
        if change:
            super().save_model(request, obj, form, change)
            return
        stored, plain = self.make(obj)
        obj.pk, obj.prefix, obj.hashed_key = stored.pk, stored.prefix, stored.hashed_key
        # On this request only: it is in no session, cookie, log or message, and a reload cannot show it again.
        request.plain_secret = plain  # type: ignore[attr-defined] # response_add shows it

    def response_add(self, request: HttpRequest, obj: S, post_url_continue: str | None = None) -> HttpResponse:
        context: dict[str, Any] = {
            **self.admin_site.each_context(request),
            "title": f"{capfirst(self.opts.verbose_name)} {obj.name}",
            "opts": self.opts,
            "secret": obj,
            "noun": self.noun,
            "usage": self.usage,
            "plain": request.plain_secret,  # type: ignore[attr-defined] # from save_model
            "is_popup": IS_POPUP_VAR in request.POST,
        }
        response = TemplateResponse(request, "admin/dashboard/secret_created.html", context)
        response.headers["Cache-Control"] = "no-store"
        return response

    @admin.action(description="Revoke the selected ones", permissions=["change"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[S]) -> None:
        num_revoked = queryset.filter(is_active=True).update(is_active=False)
        were = f"1 {self.noun} was" if num_revoked == 1 else f"{num_revoked} {self.noun}s were"
        self.message_user(request, f"{were} revoked; requests with them are refused within a second.", messages.SUCCESS)


@admin.register(ApiKey)
class ApiKeyAdmin(SecretAdmin[ApiKey]):
    noun = "key"
    usage = "Clients send it as “Authorization: Bearer …”; the openai package takes it as api_key."
    typed: ClassVar[list[str]] = ["name", "tenant"]
    list_filter = ["is_active", "tenant"]
    search_fields = ["name", "tenant", "prefix"]

    def make(self, obj: ApiKey) -> tuple[ApiKey, str]:
        return create_api_key(obj.name, obj.tenant)


@admin.register(ReadToken)
class ReadTokenAdmin(SecretAdmin[ReadToken]):
    noun = "token"
    usage = "Programs send it to /api/v1 as “Authorization: Bearer …”. It reads numbers of all engines and tenants."

    def make(self, obj: ReadToken) -> tuple[ReadToken, str]:
        return create_read_token(obj.name)
