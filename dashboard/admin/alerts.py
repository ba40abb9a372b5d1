"""What is watched for, from which threshold on, and who is told. Alerts themselves are on their own page."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import Count, QuerySet
from django.http import HttpRequest
from django.utils import timezone

from dashboard.admin.sources import ACCESS
from dashboard.alert_words import WORDS
from dashboard.charts.words import ago
from dashboard.forms_alerts import RuleForm, WebhookForm
from dashboard.models import AlertRule, Webhook
from dashboard.services.alerts import ensure_rules
from dashboard.services.webhooks import send_test
from dashboard.sources.http import ScrapeError


@admin.register(AlertRule)
class AlertRuleAdmin(admin.ModelAdmin[AlertRule]):
    form = RuleForm
    list_display = ["kind", "is_enabled", "threshold", "for_minutes", "measures"]
    list_display_links = ["kind"]
    readonly_fields = ["kind", "measures"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[AlertRule]:
        ensure_rules()
        return super().get_queryset(request)

    def get_fields(self, request: HttpRequest, obj: AlertRule | None = None) -> Any:
        has_threshold = obj is None or WORDS[obj.kind].threshold is not None
        return ["kind", "measures", "is_enabled", *(["threshold"] if has_threshold else []), "for_minutes"]

    @admin.display(description="holds where")
    def measures(self, rule: AlertRule) -> str:
        return WORDS[rule.kind].measures

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: AlertRule | None = None) -> bool:
        return False


@admin.register(Webhook)
class WebhookAdmin(admin.ModelAdmin[Webhook]):
    form = WebhookForm
    list_display = ["name", "url", "is_enabled", "state", "waiting"]
    readonly_fields = ["state", "waiting"]
    actions = ["test"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Webhook]:
        return super().get_queryset(request).annotate(num_waiting=Count("notices"))

    def get_fieldsets(self, request: HttpRequest, obj: Webhook | None = None) -> Any:
        access = ("Token, headers, certificates", {"fields": ACCESS, "classes": ["collapse"]})
        health = [("How it goes", {"fields": ["state", "waiting"]})] if obj else []
        return [(None, {"fields": ["name", "url", "is_enabled", "sends_resolved"]}), access, *health]

    @admin.action(description="Send a test alert to the selected ones", permissions=["change"])
    def test(self, request: HttpRequest, queryset: QuerySet[Webhook]) -> None:
        """No transaction is open here: a slow server keeps nobody else from saving."""
        for webhook in queryset:
            try:
                send_test(webhook, timezone.now())
            except ScrapeError as error:
                self.message_user(request, f"The webhook {webhook.name} was not told: {error}", messages.ERROR)
            else:
                self.message_user(request, f"The webhook {webhook.name} took a test alert.", messages.SUCCESS)

    @admin.display(description="state")
    def state(self, webhook: Webhook) -> str:
        told = f"Last told {ago((timezone.now() - webhook.last_ok_at).total_seconds())}." if webhook.last_ok_at else ""
        told = " ".join(filter(None, [webhook.last_error, told])) or "Not told of anything yet."
        return " ".join(filter(None, [told, webhook.warning]))

    @admin.display(description="waiting to be told")
    def waiting(self, webhook: Any) -> str:
        return f"{webhook.num_waiting:,}"
