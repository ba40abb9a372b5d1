"""The admin's forms for what is watched: sources, and mappings of texts that no table knows. Reads nothing itself."""

from typing import Any
from urllib.parse import urlsplit

from django import forms
from django.forms.models import BaseInlineFormSet
from django.utils import timezone

from dashboard.models import Backfill, CacheTier, Discovery, Mapping, MappingRow, Source
from dashboard.models_sources import CHOSEN_KINDS, NAME_WORDS
from dashboard.services.backfill import check
from dashboard.services.source_names import check_name
from dashboard.services.sources import check_mapping, check_not_ours, check_series, check_url, target_of
from dashboard.sources.address import address_problem
from dashboard.sources.discovery import DiscoveryError, check_path
from dashboard.sources.headers import check_token, parse_headers
from dashboard.sources.http import fetch_target
from dashboard.sources.target import Tls
from dashboard.sources.tls import TlsError, tls_context
from dashboard.sources.typed import MAX_ROWS, overlaps, row_problem

TLS = ("tls_ca", "tls_is_unchecked", "tls_cert", "tls_server_name")  # and the key, which is never shown
_SECRETS = ("token", "headers", "tls_key")
_STRETCH = ("source", "url", "selector", "start_at", "end_at", "step_seconds")


class AccessForm(forms.ModelForm[Any]):
    """Token, headers and key are typed and never shown: empty keeps what is stored, `forget` removes it."""

    typed_token = forms.CharField(
        label="Token",
        required=False,
        max_length=4000,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text="Sent as “Authorization: Bearer …”. Never shown again; empty keeps what is stored.",
    )
    typed_headers = forms.CharField(
        label="Headers",
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "autocomplete": "off"}),
        help_text="One a line, like “X-Scope-OrgID: team-a”. Never shown again; empty keeps what is stored.",
    )
    typed_key = forms.CharField(
        label="Key of our certificate",
        required=False,
        max_length=20_000,
        widget=forms.Textarea(attrs={"rows": 3, "autocomplete": "off"}),
        help_text="As PEM, without a password. Never shown again; empty keeps what is stored.",
    )
    forget = forms.BooleanField(label="Forget the stored token, headers and key", required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._refuse_numbers_early()
        if "forget" in self.fields and not self._stored:
            self.fields["forget"].disabled = True

    def _refuse_numbers_early(self) -> None:
        """By the model's bounds: Django asks them when the instance has the number already, and how that instance goes
        is reckoned and shown beside what is wrong.
        """
        for name, field in self.fields.items():
            if isinstance(field, forms.IntegerField):
                field.validators = [*self.instance._meta.get_field(name).validators]

    @property
    def _stored(self) -> bool:
        return self._keeps(self.instance)

    def clean_typed_token(self) -> str:
        token: str = self.cleaned_data["typed_token"].strip()
        try:
            check_token(token)
        except ValueError as error:
            raise forms.ValidationError(str(error), code="invalid") from None
        return token

    def clean_typed_headers(self) -> str:
        text: str = self.cleaned_data["typed_headers"]
        if not text.isascii():
            raise forms.ValidationError("Headers have ASCII characters only.", code="invalid")
        try:
            parse_headers(text)
        except ValueError as error:
            raise forms.ValidationError(str(error), code="invalid") from None
        return text

    def clean_tls_ca(self) -> str:
        text: str = self.cleaned_data["tls_ca"].strip()
        try:
            tls_context(Tls(ca=text))
        except TlsError as error:
            raise forms.ValidationError(str(error), code="invalid") from None
        return text

    def clean_tls_cert(self) -> str:
        text: str = self.cleaned_data["tls_cert"].strip()
        if "PRIVATE KEY" in text:
            raise forms.ValidationError("Its key belongs into the field for it, which is never shown.", code="invalid")
        return text

    def clean_tls_server_name(self) -> str:
        name: str = self.cleaned_data["tls_server_name"].strip()
        if name and address_problem(f"https://{name}/"):
            raise forms.ValidationError("This is no name of a server; expected one like gpu-7.example.", code="invalid")
        return name

    def take_secrets(self, instance: Any, url_before: str, url: str) -> None:
        """Puts what was typed on `instance`. Raises ValidationError: a stored secret never goes to another server."""
        data = self.cleaned_data
        if data.get("forget"):
            for name in _SECRETS:
                setattr(instance, name, "")
        typed = {name: data.get(f"typed_{name.removeprefix('tls_')}") for name in _SECRETS}
        is_kept = any(getattr(instance, name) and not text for name, text in typed.items())
        if is_kept and _origin(url_before) != _origin(url):
            raise forms.ValidationError(
                "The server changed: type its token, headers and key, or have the stored ones forgotten.", code="moved"
            )
        for name, text in typed.items():
            setattr(instance, name, text or getattr(instance, name))
        self._check_pair(instance)

    def _keeps(self, instance: Any) -> bool:
        return any(getattr(instance, name) for name in _SECRETS)

    def _check_pair(self, instance: Any) -> None:
        try:
            tls_context(Tls(cert=self.cleaned_data["tls_cert"], key=instance.tls_key))
        except TlsError as error:
            raise forms.ValidationError({"tls_cert": str(error)}) from None


def _origin(url: str) -> tuple[str, str]:
    """Of a file, which has no server, the path."""
    parts = urlsplit(url)
    return parts.scheme, parts.netloc or parts.path


class SourceForm(AccessForm):
    refusal = ""  # of the address, where somebody asked it: `asked` calls another server, `clean` never does

    class Meta:
        model = Source
        fields = [
            *("name", "kind", "mapping", "url", "selector", "interval_seconds", "is_enabled"),
            *("typed_prefill", "typed_loads", *TLS),
        ]
        labels = {"interval_seconds": "Read every", "is_enabled": "Read it"}
        help_texts = {
            "name": "How its engines are called on pages: letters, digits, dots, dashes and underscores.",
            "url": "The metrics address, like http://gpu-7:8000/metrics; or a Prometheus, like http://prometheus:9090.",
            "interval_seconds": "Seconds, 1 to 3600. The charts have a point every 10 s.",
        }
        error_messages = {"name": {"invalid": NAME_WORDS}}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "kind" in self.fields:  # the embedded engines have their source already: a second would count them twice
            self.fields["kind"] = forms.ChoiceField(choices=CHOSEN_KINDS, initial=Source.Kind.AUTO)

    def clean(self) -> dict[str, Any] | None:
        data = super().clean() or self.cleaned_data
        if "url" in self.fields and not self.errors:
            self._check(data)
        return data

    def asked(self) -> str:
        """Why a new address is refused; "" where it is not. Takes as long as a scrape. Valid forms only."""
        if not {"url", "selector"} & set(self.changed_data):
            return ""
        try:
            check_not_ours(target_of(self.wanted), fetch_target, timezone.now())
        except forms.ValidationError as error:
            return " ".join(error.messages)
        return ""

    def _check(self, data: dict[str, Any]) -> None:
        if self.refusal:
            self.add_error("url", self.refusal)
            return
        wanted = self.wanted = Source(**{name: data[name] for name in ("url", "kind", "mapping", "selector", *TLS)})
        for name in _SECRETS:
            setattr(wanted, name, getattr(self.instance, name))
        try:
            self._check_unlisted()
            if "name" in self.changed_data:
                check_name(data["name"])
            check_url(wanted.url)
            check_mapping(wanted.kind, wanted.mapping)
            check_series(wanted.selector)
            self.take_secrets(wanted, self.initial.get("url", ""), wanted.url)
            for name in _SECRETS:
                setattr(self.instance, name, getattr(wanted, name))
        except forms.ValidationError as error:
            self.add_error(None, error)

    def _check_unlisted(self) -> None:
        """Raises ValidationError for another address than its list has, which may send the list's token there."""
        if (discovery := self.instance.discovery) and {"url", "selector"} & set(self.changed_data):
            raise forms.ValidationError(
                {"url": f"Its address comes from the discovery “{discovery}”: change it there."}
            )


class DiscoveryForm(AccessForm):
    class Meta:
        model = Discovery
        fields = [
            *(
                "name",
                "kind",
                "location",
                "selector",
                "source_kind",
                "mapping",
                "interval_seconds",
                "refresh_seconds",
                "is_enabled",
            ),
            *TLS,
        ]
        labels = {"selector": "Series of a Prometheus"}
        help_texts = {"name": "Its engines are called by it on pages: fleet → fleet-10.0.0.7-8000."}
        error_messages = {"name": {"invalid": NAME_WORDS}}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["source_kind"] = forms.ChoiceField(label="Its engines are", choices=CHOSEN_KINDS)

    def clean(self) -> dict[str, Any] | None:
        data = super().clean() or self.cleaned_data
        if not self.errors:
            self._check(data)
        return data

    def _check(self, data: dict[str, Any]) -> None:
        """The token goes to the list's server and to the engines: another list needs it typed again."""
        try:
            check_mapping(data["source_kind"], data["mapping"])
            check_series(data["selector"])
            if data["kind"] != Discovery.Kind.PROMETHEUS and data["selector"]:
                raise forms.ValidationError({"selector": "Leave it empty: only a Prometheus has series."})
            if data["kind"] == Discovery.Kind.FILE:
                check_path(data["location"])
            else:
                check_url(data["location"])
            self.take_secrets(self.instance, self.initial.get("location", ""), data["location"])
        except DiscoveryError as error:
            self.add_error("location", str(error))
        except forms.ValidationError as error:
            fields = {"url": "location"}
            for name, problems in error.message_dict.items() if hasattr(error, "error_dict") else [(None, error)]:
                self.add_error(fields.get(name, name) if name else None, problems)


class BackfillForm(AccessForm):
    class Meta:
        model = Backfill
        fields = [*_STRETCH, *TLS]
        labels = {"start_at": "From", "end_at": "To", "step_seconds": "Step"}
        help_texts = {"step_seconds": "Seconds between two looks, 10 to 3600. 60 suits most."}

    def clean(self) -> dict[str, Any] | None:
        data = super().clean() or self.cleaned_data
        if not self.errors:
            self.take_secrets(self.instance, data["url"], data["url"])
            try:
                check(Backfill(**{name: data[name] for name in _STRETCH}))
            except forms.ValidationError as error:
                self.add_error(None, error)
        return data


class MappingForm(forms.ModelForm[Mapping]):
    class Meta:
        model = Mapping
        fields = ["name", "engine_label", "model_label", "is_complete"]


class MappingRowForm(forms.ModelForm[MappingRow]):
    class Meta:
        model = MappingRow
        fields = ["name", "label", "value", "means", "cache_tier"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        told = [choice for choice in CacheTier.choices if choice[0] != CacheTier.UNATTRIBUTED]
        choices = [("", "---------"), *told, (CacheTier.UNATTRIBUTED.value, "Unattributed: not told in which")]
        self.fields["cache_tier"] = forms.ChoiceField(label="Tier", choices=choices, required=False)

    def clean(self) -> dict[str, Any] | None:
        data = super().clean() or self.cleaned_data
        typed = {name: data[name] for name in self.Meta.fields if name in data}
        if {"name", "means"} <= typed.keys() and (problem := row_problem(MappingRow(**typed))):
            raise forms.ValidationError(problem, code="invalid")
        return data


class MappingRowFormSet(BaseInlineFormSet[MappingRow, Mapping, MappingRowForm]):
    max_num = MAX_ROWS
    absolute_max = MAX_ROWS

    def clean(self) -> None:
        """Nothing is counted twice, and there is something to count."""
        super().clean()
        if any(self.errors):
            return
        rows = self.typed_rows
        if not rows:
            raise forms.ValidationError("Type at least one row: without one nothing is read.", code="empty")
        for problem in overlaps(rows):
            raise forms.ValidationError(problem, code="overlap")

    @property
    def typed_rows(self) -> list[MappingRow]:
        """The rows as they would be saved. Valid formsets only."""
        kept = [form for form in self.forms if form.has_changed() or form.instance.pk]
        return [form.instance for form in kept if not form.cleaned_data.get("DELETE")]
