"""The admin's forms: what a person types, checked, with one sentence for what is wrong.

Knows what an engine can give (its live state), never how a size is applied.
"""

from dataclasses import astuple
from typing import Any

from django import forms
from django.core import signing

from dashboard.models import CacheTier, Retention, TierSetting
from dashboard.selectors.engines import LiveTier, fleet
from dashboard.selectors.resizes import factor, is_large_shrink
from dashboard.services.tiers import Wish
from dashboard.sizes import exact_size, format_size, parse_size
from dashboard.tier_modes import MODES, modes_in_words

_SALT = "dashboard.tiersetting.seen"
_SLOWER_ONLY = [name for name in MODES if name not in ("policy", "tenant_quota")]


class SizeField(forms.CharField):
    """Bytes, typed as people write them."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=64, **kwargs)

    def prepare_value(self, value: Any) -> Any:
        return exact_size(value) if isinstance(value, int) else value

    def clean(self, value: Any) -> int:
        text = super().clean(value)
        try:
            return parse_size(text)
        except ValueError as error:
            raise forms.ValidationError(str(error), code="invalid") from None

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            return bool(parse_size(data) != initial)
        except ValueError:
            return True


class TierSettingForm(forms.ModelForm[TierSetting]):
    size = SizeField(help_text="Like 2 GiB, 512 MiB or 0. Zero switches the tier off.")
    confirmed = forms.BooleanField(label="Yes, make it so much smaller", required=False, widget=forms.HiddenInput)
    seen = forms.CharField(widget=forms.HiddenInput, required=False)

    class Meta:
        model = TierSetting
        fields = MODES

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.stored = Wish.of(self.instance)
        self.initial["size"] = self.stored.desired_bytes
        self.initial["seen"] = signing.dumps(astuple(self.stored), salt=_SALT)
        if self.instance.cache_tier == CacheTier.GPU:
            # A block is computed in the GPU tier: there is no moment at which it would be written there or read from.
            for name in _SLOWER_ONLY:
                self.fields.pop(name, None)
            self.fields["size"].help_text = "Like 2 GiB or 512 MiB. Attention reads from here, so it cannot be zero."

    @property
    def wish(self) -> Wish:
        """What the author wants. Valid forms only."""
        data = self.cleaned_data
        modes: dict[str, Any] = {name: data.get(name, stored) for name, stored in self.stored.modes.items()}
        return Wish(data["size"], **modes)

    def clean_size(self) -> int:
        num_bytes: int = self.cleaned_data["size"]
        if num_bytes == 0 and self.instance.cache_tier == CacheTier.GPU:
            raise forms.ValidationError("The GPU tier cannot be zero: attention reads from it.", code="too_small")
        engine = fleet().engines.get(self.instance.engine)
        live = engine.tiers.get(self.instance.cache_tier) if engine else None
        if live and num_bytes != self.stored.desired_bytes:
            self._check_machine(num_bytes, live)
        return num_bytes

    def clean(self) -> dict[str, Any] | None:
        seen = self._seen()
        if seen is None:
            raise forms.ValidationError(
                "This page does not say which sizes you saw, so nothing was saved: open it again.", code="unseen"
            )
        if seen != self.stored:
            raise forms.ValidationError(
                "Somebody else changed this tier while this page was open, so nothing was saved. "
                f"It is now {exact_size(self.stored.desired_bytes)}, "
                f"{modes_in_words(self.instance.cache_tier, self.stored.modes)}: open the page again and decide anew.",
                code="changed_meanwhile",
            )
        if self._lacks_confirmation():
            self.fields["confirmed"].widget = forms.CheckboxInput()
            self.add_error("confirmed", self._what_would_be_lost(self.cleaned_data["size"]))
        return super().clean()

    def _lacks_confirmation(self) -> bool:
        """Most likely a unit was left out: 128 is 128 bytes."""
        data = self.cleaned_data
        return "size" in data and not data.get("confirmed") and is_large_shrink(self.stored.desired_bytes, data["size"])

    def _what_would_be_lost(self, num_bytes: int) -> str:
        before, after = exact_size(self.stored.desired_bytes), exact_size(num_bytes)
        return (
            f"{before} → {after} is {factor(before, after)}: what the tier then has no room for is dropped. "
            "Tick the box and save again if that is meant."
        )

    def _seen(self) -> Wish | None:
        """What the author had before their eyes; None where the page's own record of it is missing or forged."""
        try:
            return Wish(*signing.loads(self.data.get(self.add_prefix("seen"), ""), salt=_SALT))
        except (signing.BadSignature, TypeError):
            return None

    def _check_machine(self, num_bytes: int, live: LiveTier) -> None:
        tier = f"The {self.instance.get_cache_tier_display()} tier of {self.instance.engine}"
        asked = f"{format_size(num_bytes)} was asked for"
        if live.max_bytes is not None and num_bytes > live.max_bytes:
            raise forms.ValidationError(
                f"{tier} can have at most {_limit(live.max_bytes, live.max_reason)}; {asked}.", code="too_large"
            )
        if num_bytes < live.min_bytes:
            raise forms.ValidationError(
                f"{tier} needs at least {_limit(live.min_bytes, live.min_reason)}; {asked}.", code="too_small"
            )
        if live.block_bytes and 0 < num_bytes < live.block_bytes:  # most likely a forgotten unit: 128 is 128 bytes
            raise forms.ValidationError(
                f"{tier} needs at least {format_size(live.block_bytes)}, which is one block, or 0 to switch it off; "
                f"{asked}. Was a unit left out, like MiB?",
                code="too_small",
            )


def _limit(num_bytes: int, reason: str) -> str:
    return f"{format_size(num_bytes)} ({reason.rstrip('.')})" if reason else format_size(num_bytes)


class RetentionForm(forms.ModelForm[Retention]):
    class Meta:
        model = Retention
        fields = "__all__"

    # Each resolution with its days, finest first: a coarser one that goes first would tear a hole into long ranges.
    _LADDER = [
        ("ten_seconds_hours", "10 s buckets", 1 / 24),
        ("minutes_days", "1 min buckets", 1),
        ("hours_days", "1 h buckets", 1),
        ("days_years", "1 d buckets", 365),
    ]

    def clean(self) -> dict[str, Any] | None:
        data = super().clean() or self.cleaned_data
        for (finer, finer_name, finer_days), (coarser, coarser_name, coarser_days) in zip(
            self._LADDER, self._LADDER[1:], strict=False
        ):
            if data.get(finer) and data.get(coarser) and data[finer] * finer_days > data[coarser] * coarser_days:
                self.add_error(
                    coarser, f"{coarser_name} must be kept at least as long as {finer_name}, which they are made from."
                )
        return data
