"""Gathers what a prediction is made from: one engine in one period, its tiers today, prices. Reads only."""

from dataclasses import dataclass, replace

from django.urls import reverse
from django.utils.http import urlencode

from dashboard.charts import what_if_words
from dashboard.models import Series, Source, TierSetting
from dashboard.predicting import Predictor, Sizes, estimated, of_tenant
from dashboard.recent import Recent
from dashboard.selectors import what_if
from dashboard.selectors.engines import Fleet
from dashboard.selectors.period import Period
from dashboard.selectors.present import engines_and_models
from dashboard.selectors.prices import PriceList, prices
from dashboard.selectors.reuse import ReuseCurve, tenant_curve, tenants_with_curves
from dashboard.selectors.tier_sizes import Readings, capacity_readings, tier_sizes
from dashboard.selectors.typed_costs import typed_of
from dashboard.selectors.waits import waits_of

_SHOWN_SECONDS = 30  # a page asks anew whenever something was recorded: every ten


@dataclass(frozen=True)
class _Stored:
    """What was read of the series, at `read_at` for `period`; `tenants` are those that have curves."""

    read_at: float
    period: Period
    measured: what_if.Measured
    readings: Readings
    tenants: list[str]


_recent: Recent[_Stored] = Recent(32)
_shown: Recent[_Stored] = Recent(32)


@dataclass(frozen=True)
class Asked:
    """`obstacle` is the sentence that says why nothing can be predicted, or empty.

    `tenant` is one of `tenants`, or None for all prompts.
    """

    engine: str
    model_name: str | None
    period: Period
    predictor: Predictor
    obstacle: str
    tenant: str | None
    tenants: list[str]


@dataclass(frozen=True)
class Question:
    """Whose prompts, of which period. `shown_as` names the period on a page, so that the sliders move what it shows."""

    period: Period
    engine: str
    model_name: str | None = None
    tenant: str | None = None
    shown_as: str = ""

    @property
    def page(self) -> tuple[str, str, str | None, str | None]:
        return self.shown_as, self.engine, self.model_name, self.tenant


def ask(question: Question, *, alive: Fleet, now: float, is_move: bool = False) -> Asked:
    """Of one tenant's prompts there are neither times nor a bill: tiers and waiting are everybody's.

    With `is_move` what the page showed last is taken, also where something was recorded since.
    """
    stored = _stored(question, now, is_move)
    engine, tenant = question.engine, question.tenant
    sizes = tier_sizes(alive, stored.readings, engine=engine)
    predictor = Predictor(stored.measured, sizes, PriceList() if tenant else prices(), typed_of(engine))
    obstacle = _obstacle(engine, predictor)
    return Asked(engine, question.model_name, stored.period, predictor, obstacle, tenant, stored.tenants)


def _stored(question: Question, now: float, is_move: bool) -> _Stored:
    """Read once until something new is recorded."""
    shown = _shown.find(question.page) if is_move else None
    if shown is not None and 0 <= now - shown.read_at < _SHOWN_SECONDS:
        return shown
    last_read_at = what_if.last_read_at(question.engine)
    if last_read_at is None:
        return _read(question, now)
    found = _recent.get((question, last_read_at), lambda: _read(question, now))
    _shown.keep(question.page, replace(found, read_at=now))
    return found


def _read(question: Question, now: float) -> _Stored:
    period, engine, model_name = question.period, question.engine, question.model_name
    measured = what_if.measured(period, engine=engine, model_name=model_name, now=now)
    readings = capacity_readings(engine=engine, model_name=model_name)
    if not measured.curve.total_tokens:
        measured = replace(measured, curve=_estimate(period, engine, model_name, readings) or measured.curve)
    if question.tenant:
        measured = _of_tenant(measured, question, question.tenant)
    return _Stored(now, period, measured, readings, tenants_with_curves(engine=engine, model_name=model_name))


def _of_tenant(whole: what_if.Measured, question: Question, tenant: str) -> what_if.Measured:
    period, engine, model_name = question.period, question.engine, question.model_name
    told = tenant_curve(period, tenant, engine=engine, model_name=model_name)
    curve = of_tenant(told, whole.curve)
    return what_if.of_tenant(whole, curve, period, tenant, engine=engine, model_name=model_name)


def _estimate(period: Period, engine: str, model_name: str | None, readings: Readings) -> ReuseCurve | None:
    """Of an engine that does not count its reuse by capacity, but tells how long blocks waited for it."""
    size = round(readings.get("gpu", {}).get(Series.Metric.CAPACITY_TOKENS, 0))
    waits = waits_of(period, engine=engine, model_name=model_name, capacity_tokens=size)
    try:
        return None if waits is None else estimated(waits)
    except ValueError:  # more hits than prompt tokens, or evictions after no time: no cache does that
        return None


def default_engine(alive: Fleet) -> str:
    """One that tells its curve, running ones first, replays last; "" where none was ever seen."""
    told = what_if.engines_with_curves()
    running = [name for name in told if name in alive.engines]
    known = engines_and_models()
    return next(iter([*running, *told, *sorted(alive.engines), *known["engines"], *known["replays"]]), "")


def apply_url(asked: Asked, sizes: Sizes) -> str:
    """Where staff apply them; "" for an engine whose tiers are not ours to size."""
    if not TierSetting.objects.filter(engine=asked.engine).exists():
        return ""
    made_from: dict[str, str | int] = {"engine": asked.engine, "start": asked.period.start, "end": asked.period.end}
    model = {"model": asked.model_name} if asked.model_name else {}
    return f"{reverse('admin:dashboard_tiersetting_apply')}?{urlencode({**made_from, **model, **sizes})}"


def _obstacle(engine: str, predictor: Predictor) -> str:
    if not predictor.measured.curve.total_tokens and (kind := _watched_kind(engine)):
        return what_if_words.watched_text(kind)
    if shortage := what_if_words.shortage(predictor.measured):
        return shortage
    return "" if predictor.tiers else "The engine does not tell how large its tiers are, so that none can be predicted."


def _watched_kind(engine: str) -> str:
    """What kind of engine it is; "" for our own."""
    sources = Source.objects.filter(series__engine=engine).exclude(kind__in=(Source.Kind.EMBEDDED, Source.Kind.REPLAY))
    return source.read_as if (source := sources.first()) else ""
