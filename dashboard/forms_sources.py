"""The admin's forms for what is watched: sources, and mappings of texts that no table knows. Reads nothing itself."""

from typing import Any

from django import forms
from django.forms.models import BaseInlineFormSet

from dashboard.models import Mapping, MappingRow, Source
from dashboard.services.sources import check_mapping, check_not_ours, check_url, target_of
from dashboard.sources.http import fetch_target
from dashboard.sources.typed import MAX_ROWS, overlaps, row_problem


class SourceForm(forms.ModelForm[Source]):
    class Meta:
        model = Source
        fields = ["name", "kind", "mapping", "url", "interval_seconds", "is_enabled"]
        labels = {"interval_seconds": "Read every", "is_enabled": "Read it"}
        help_texts = {
            "name": "How its engines are called on pages: letters, digits, dots, dashes and underscores.",
            "url": "The metrics address, like http://gpu-7:8000/metrics.",
            "interval_seconds": "Seconds, 1 to 3600. The charts have a point every 10 s.",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "kind" in self.fields:  # the embedded engines have their source already: a second would count them twice
            kinds = [choice for choice in Source.Kind.choices if choice[0] != Source.Kind.EMBEDDED]
            self.fields["kind"] = forms.ChoiceField(choices=kinds, initial=Source.Kind.AUTO)

    def clean(self) -> dict[str, Any] | None:
        data = super().clean() or self.cleaned_data
        if "url" in self.fields and not {"url", "kind", "mapping"} & self.errors.keys():
            self._check(Source(url=data["url"], kind=data["kind"], mapping=data["mapping"]))
        return data

    def _check(self, wanted: Source) -> None:
        try:
            check_url(wanted.url)
            check_mapping(wanted)
            if "url" in self.changed_data:
                check_not_ours(target_of(wanted), fetch_target)
        except forms.ValidationError as error:
            self.add_error(None, error)


class MappingForm(forms.ModelForm[Mapping]):
    class Meta:
        model = Mapping
        fields = ["name", "engine_label", "model_label", "is_complete"]


class MappingRowForm(forms.ModelForm[MappingRow]):
    class Meta:
        model = MappingRow
        fields = ["name", "label", "value", "means", "cache_tier"]

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
