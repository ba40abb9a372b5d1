"""The form for a new replay. Reads the folder of traces; stores nothing."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from dashboard.models import Replay, TierSetting
from dashboard.replay_sizes import DEFAULT_BYTES_A_TOKEN, parse_replay_size
from dashboard.services.replays import TIERS, TierWish, Wanted, free_name
from dashboard.sizes import exact_size, parse_size
from dashboard.trace_folder import trace_files

NOW, TRACE, AT = "now", "trace", "at"
_WHEN = [(NOW, "so that it ends now"), (TRACE, "at the times that the trace tells"), (AT, "from this moment on")]
_SIZES = {"gpu": "1000", "cpu": "10000", "disk": "", "remote": ""}


class ReplayForm(forms.Form):
    """`wanted` is what was asked for, of a valid form."""

    file = forms.ChoiceField(label="Trace")
    name = forms.CharField(max_length=64, required=False, help_text="How pages call it; empty: as the file.")
    form = forms.ChoiceField(choices=Replay.Form.choices, required=False, label="Form")
    bytes_a_token = forms.CharField(
        label="A token takes",
        max_length=40,
        initial=exact_size(DEFAULT_BYTES_A_TOKEN),
        help_text="Keys and values; of SmolLM2-135M in fp32 it is 45 KiB. Only sizes in bytes need it.",
    )
    when = forms.ChoiceField(choices=_WHEN, required=False, label="It lies")
    starts_at = forms.DateTimeField(
        required=False,
        label="Start",
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
    )
    store_after_hits = forms.IntegerField(initial=2, required=False, label="Write selective stores at hit")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.wanted: Wanted | None = None
        files = trace_files()
        self.fields["file"] = forms.ChoiceField(label="Trace", choices=[(each.name, each.name) for each in files])
        for tier in TIERS:
            self.fields[f"{tier}_size"] = forms.CharField(
                max_length=40, required=tier == TIERS[0], label=f"Size of {tier}", initial=_SIZES[tier]
            )
            self.fields[f"{tier}_policy"] = forms.ChoiceField(
                choices=TierSetting.Policy.choices, required=False, label=f"Policy of {tier}"
            )
            if tier != TIERS[0]:
                self.fields[f"{tier}_mode"] = forms.ChoiceField(
                    choices=TierSetting.WriteMode.choices, required=False, label=f"Write mode of {tier}"
                )

    @property
    def tiers(self) -> list[dict[str, Any]]:
        """A row a tier, for the template."""
        return [
            {
                "tier": tier,
                "size": self[f"{tier}_size"],
                "policy": self[f"{tier}_policy"],
                "mode": self[f"{tier}_mode"] if tier != TIERS[0] else "",
            }
            for tier in TIERS
        ]

    def clean(self) -> dict[str, Any] | None:
        data = super().clean() or self.cleaned_data
        if not self.errors:
            self._read(data)
        return data

    def _read(self, data: dict[str, Any]) -> None:
        if data["when"] == AT and not data["starts_at"]:
            self.add_error("starts_at", "Type when it is to start.")
            return
        try:
            bytes_a_token = parse_size(data["bytes_a_token"])
            tiers = [wish for tier in TIERS if (wish := _wish(tier, data))]
        except ValueError as error:
            raise ValidationError(str(error), code="size") from None
        self.wanted = Wanted(
            name=data["name"] or free_name(data["file"].partition(".")[0]),
            file_name=data["file"],
            tiers=tiers,
            form=data["form"] or Replay.Form.AUTO,
            bytes_a_token=bytes_a_token,
            starts_at=int(data["starts_at"].timestamp()) if data["when"] == AT else None,
            keeps_times=data["when"] == TRACE,
        )


def _wish(tier: str, data: dict[str, Any]) -> TierWish | None:
    """None for a tier that is left empty. Raises ValueError."""
    if not data[f"{tier}_size"]:
        return None
    return TierWish(
        tier,
        parse_replay_size(data[f"{tier}_size"]),
        data[f"{tier}_policy"] or TierSetting.Policy.LRU,
        data.get(f"{tier}_mode") or TierSetting.WriteMode.WRITE_BACK,
        data["store_after_hits"] or 2,
    )
