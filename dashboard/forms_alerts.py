"""The admin's forms for alert rules and webhooks. Ask nobody."""

from typing import Any

from django import forms

from dashboard.alert_words import WORDS
from dashboard.forms_sources import TLS, AccessForm
from dashboard.models import AlertRule, Webhook
from dashboard.services.sources import check_url


class RuleForm(forms.ModelForm[AlertRule]):
    class Meta:
        model = AlertRule
        fields = ["is_enabled", "threshold", "for_minutes"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "threshold" in self.fields:
            usual = WORDS[self.instance.kind].threshold
            self.fields["threshold"].required = True
            self.fields["threshold"].help_text = f"A share, 0 to 1; {usual} is usual."


class WebhookForm(AccessForm):
    class Meta:
        model = Webhook
        fields = ["name", "url", "is_enabled", "sends_resolved", *TLS]

    def clean(self) -> dict[str, Any] | None:
        data = super().clean() or self.cleaned_data
        if not self.errors:
            try:
                check_url(data["url"])
                self.take_secrets(self.instance, self.initial.get("url", ""), data["url"])
            except forms.ValidationError as error:
                self.add_error(None, error)
        return data
