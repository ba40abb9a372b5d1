"""Sizes from the what-if page, filled in for all tiers of one engine: looked at once more, then applied together."""

import time
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone

from dashboard.admin.request_user import user_of
from dashboard.forms import TierSettingForm
from dashboard.models import CacheTier, Prediction, TierSetting
from dashboard.selectors.engines import fleet
from dashboard.selectors.period import PeriodError, between
from dashboard.selectors.tier_states import change_in_words
from dashboard.services.predictions import SizeWish, apply_sizes
from dashboard.services.tiers import ChangedMeanwhileError
from dashboard.sizes import MAX_BYTES, exact_size
from dashboard.what_if import Asked, Question, ask

_LONGEST_NAME = 200


class TierSizeForm(TierSettingForm):
    """The size alone; the tier's modes stay as they are."""

    class Meta:
        model = TierSetting
        fields: tuple[str, ...] = ()


def apply_view(request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
    """`engine`, `start` and `end` of the period, and bytes by tier are in the address; a POST applies what is typed."""
    engine = request.GET.get("engine", "")[:_LONGEST_NAME]
    settings = sorted(TierSetting.objects.filter(engine=engine), key=lambda s: CacheTier.values.index(s.cache_tier))
    if not settings:
        raise Http404
    forms = [_form(request, setting) for setting in settings]
    if request.method == "POST" and all([form.is_valid() for form in forms]):  # noqa: C419 (each tells what is wrong)
        return _apply(request, engine, forms)
    context |= {
        "title": f"Apply these sizes to {engine}?",
        "rows": [
            {"form": form, "setting": form.instance, "before": exact_size(form.instance.desired_bytes)}
            for form in forms
        ],
    }
    return TemplateResponse(request, "admin/dashboard/tiersetting/apply.html", context)


def _form(request: HttpRequest, setting: TierSetting) -> TierSizeForm:
    if request.method == "POST":
        return TierSizeForm(request.POST, instance=setting, prefix=setting.cache_tier)
    form = TierSizeForm(instance=setting, prefix=setting.cache_tier)
    text = request.GET.get(setting.cache_tier, "")
    if text.isascii() and text.isdigit() and int(text[:20]) <= MAX_BYTES:
        form.initial["size"] = int(text[:20])
    return form


def _apply(request: HttpRequest, engine: str, forms: list[TierSizeForm]) -> HttpResponse:
    wishes = [SizeWish(form.instance.pk, form.instance.cache_tier, form.stored, form.wish) for form in forms]
    sizes = {each.cache_tier: each.wish.desired_bytes for each in wishes}
    prediction = _prediction(request, engine, sizes)
    try:
        changes = apply_sizes(wishes, prediction=prediction, author=user_of(request), now=timezone.now())
    except ChangedMeanwhileError:
        messages.error(request, "Somebody else changed one of these tiers just now, so nothing was saved.")
        return HttpResponseRedirect(request.get_full_path())
    if not changes:
        messages.info(request, "Nothing was changed.")
        return HttpResponseRedirect(reverse("admin:dashboard_tiersetting_changelist"))
    told = "; ".join(f"{change.cache_tier} {change_in_words(change)}" for change in changes)
    kept = "What was predicted is kept and compared on the what-if page." if prediction else "Nothing was predicted."
    messages.success(request, f"Engine {engine}: {told}. {kept}")
    return HttpResponseRedirect(reverse("admin:dashboard_tiersetting_changelist"))


def _prediction(request: HttpRequest, engine: str, sizes: dict[str, int]) -> Prediction | None:
    """For the sizes as they were confirmed, from the period in the address; None where nothing can be predicted."""
    asked = _asked(request, engine)
    if asked is None or asked.obstacle:
        return None
    predictor = asked.predictor
    outcome = predictor.predict({**predictor.today, **sizes})
    return Prediction(
        engine=engine,
        model_name=asked.model_name or "",
        period_start=asked.period.start,
        period_end=asked.period.end,
        predicted={
            "hit": dict(outcome.hit),
            "ttft_seconds": outcome.ttft_seconds,
            "sample_rate": predictor.measured.curve.sample_rate,
        },
    )


def _asked(request: HttpRequest, engine: str) -> Asked | None:
    now = time.time()
    edges = [request.GET.get(name, "") for name in ("start", "end")]
    if not all(edge.isascii() and edge.isdigit() and len(edge) <= 11 for edge in edges):
        return None
    try:
        period = between(int(edges[0]), int(edges[1]), now=now)
    except PeriodError:
        return None
    model_name = request.GET.get("model", "")[:_LONGEST_NAME] or None
    return ask(Question(period, engine, model_name), alive=fleet(), now=now)
