"""The tiers of every embedded engine: what is asked of them, what they run with, live; and clearing one."""

from dataclasses import asdict
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.forms import ModelForm
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.http import urlencode

from dashboard.admin.apply_sizes import apply_view
from dashboard.admin.request_user import user_of
from dashboard.forms import TierSettingForm
from dashboard.models import CacheTier, TierSetting
from dashboard.selectors.tier_states import change_in_words, panel, tier_state
from dashboard.services import tiers
from dashboard.sizes import exact_size
from dashboard.tier_modes import MODES

_LIST = "admin:dashboard_tiersetting_changelist"


@admin.register(TierSetting)
class TierSettingAdmin(admin.ModelAdmin[TierSetting]):
    form = TierSettingForm
    change_form_template = "admin/dashboard/tiersetting/change_form.html"
    change_list_template = "admin/dashboard/tiersetting/change_list.html"

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False  # engines bring their tiers

    def has_delete_permission(self, request: HttpRequest, obj: TierSetting | None = None) -> bool:
        return False

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        return {}

    def get_fields(self, request: HttpRequest, obj: TierSetting | None = None) -> Any:
        is_gpu = obj is not None and obj.cache_tier == CacheTier.GPU
        shown = ["size", "policy", "tenant_quota"] if is_gpu else ["size", *MODES]
        return [*shown, "confirmed", "seen"] if self.has_change_permission(request, obj) else shown

    @admin.display(description="size")
    def size(self, setting: TierSetting) -> str:
        """For those who may only look."""
        return exact_size(setting.desired_bytes)

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        return [
            path("apply/", wrap(self.apply_view), name="dashboard_tiersetting_apply"),
            path("live/", wrap(self.live_view), name="dashboard_tiersetting_live"),
            path("<int:setting_id>/clear/", wrap(self.clear_view), name="dashboard_tiersetting_clear"),
            *super().get_urls(),
        ]

    def live_view(self, request: HttpRequest) -> HttpResponse:
        """The panel's words as JSON: what the pages fetch every second."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        return JsonResponse(asdict(panel()), headers={"Cache-Control": "no-store"})

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        context = {"tier_panel": panel(), "title": "Tiers", **(extra_context or {})}
        return super().changelist_view(request, context)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        setting = self.get_object(request, object_id)
        context = {**(extra_context or {})}
        if setting is not None:
            context |= {"tier": tier_state(setting), "title": _title(setting), "subtitle": None}
        context |= {"show_save_and_add_another": False}
        return super().change_view(request, object_id, form_url, context)

    def save_model(self, request: HttpRequest, obj: TierSetting, form: ModelForm[TierSetting], change: bool) -> None:
        assert isinstance(form, TierSettingForm)
        request.tier_changes = tiers.change(  # type: ignore[attr-defined] # read once it is saved
            setting_id=obj.pk, seen=form.stored, wish=form.wish, author=user_of(request), now=timezone.now()
        )

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        """The form has looked already; this is for the other admin who saved in the millisecond since."""
        try:
            return super().changeform_view(request, object_id, form_url, extra_context)
        except tiers.ChangedMeanwhileError:
            self.message_user(
                request, "Somebody else changed this tier just now, so nothing was saved.", messages.ERROR
            )
            return HttpResponseRedirect(request.path)

    def log_change(self, request: HttpRequest, obj: TierSetting, message: Any) -> Any:
        """Django's own log would note that nothing changed; the history of a tier is TierChange."""
        return None

    def response_change(self, request: HttpRequest, obj: TierSetting) -> HttpResponse:
        changes = getattr(request, "tier_changes", [])
        if not changes:
            self.message_user(request, "Nothing was changed.", messages.INFO)
        else:
            what = ", ".join(map(change_in_words, changes))
            self.message_user(request, f"{_title(obj)}: {what}. {_when(tier_state(obj).state)}", messages.SUCCESS)
        return HttpResponseRedirect(request.path if "_continue" in request.POST else reverse(_LIST))

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        setting = self.get_object(request, object_id)
        if setting is None:
            raise Http404
        where = urlencode({"engine__exact": setting.engine, "cache_tier__exact": setting.cache_tier})
        return HttpResponseRedirect(f"{reverse('admin:dashboard_tierchange_changelist')}?{where}")

    def apply_view(self, request: HttpRequest) -> HttpResponse:
        """Sizes from the what-if page, for all tiers of an engine."""
        if not self.has_change_permission(request):
            raise PermissionDenied
        return apply_view(request, {**self.admin_site.each_context(request), "opts": self.opts})

    def clear_view(self, request: HttpRequest, setting_id: int) -> HttpResponse:
        """Shows what the tier holds; a POST drops it."""
        setting = get_object_or_404(TierSetting, pk=setting_id)
        if not self.has_change_permission(request, setting):
            raise PermissionDenied
        state = tier_state(setting)
        is_online = state.state in ("applied", "pending", "shrinking", "differs")
        if request.method == "POST" and is_online:
            tiers.clear(setting_id=setting.pk, author=user_of(request), now=timezone.now())
            blocks = f"{state.resident_blocks} {'block' if state.resident_blocks == '1' else 'blocks'}"
            message = f"{_title(setting)}: the engine was asked to drop {blocks} ({state.used})."
            self.message_user(request, message, messages.SUCCESS)
            return HttpResponseRedirect(reverse(_LIST))
        context = {
            **self.admin_site.each_context(request),
            "title": f"Clear {_title(setting)}?",
            "opts": self.opts,
            "setting": setting,
            "tier": state,
            "is_online": is_online,
        }
        return TemplateResponse(request, "admin/dashboard/tiersetting/clear.html", context)


def _title(setting: TierSetting) -> str:
    return f"{setting.get_cache_tier_display()} tier of {setting.engine}"


def _when(state: str) -> str:
    """When the wish that was just stored comes true."""
    if state == "offline":
        return "The engine is offline; it applies this at its next start."
    if state in ("loading", "failed"):
        return "The engine is starting; it applies this when it is ready."
    if state == "unknown":
        return "Valkey cannot be reached; the engine applies this as soon as it can."
    return "The engine applies it within two seconds."
