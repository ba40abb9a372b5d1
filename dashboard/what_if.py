"""Gathers what a prediction is made from: one engine in one period, its tiers today, prices. Reads only."""

from dataclasses import dataclass, replace

from django.urls import reverse
from django.utils.http import urlencode

from dashboard.charts import what_if_words
from dashboard.models import Series, Source, TierSetting
from dashboard.predicting import Predictor, Sizes, estimated
from dashboard.recent import Recent
from dashboard.selectors import what_if
from dashboard.selectors.engines import Fleet
from dashboard.selectors.period import Period
from dashboard.selectors.present import engines_and_models
from dashboard.selectors.prices import prices
from dashboard.selectors.reuse import ReuseCurve
from dashboard.selectors.tier_sizes import Readings, capacity_readings, tier_sizes
from dashboard.selectors.waits import waits_of

_Stored = tuple[what_if.Measured, Readings]
_recent: Recent[_Stored] = Recent(32)


@dataclass(frozen=True)
class Asked:
    """`obstacle` is the sentence that says why nothing can be predicted, or empty."""

    engine: str
    model_name: str | None
    period: Period
    predictor: Predictor
    obstacle: str


def ask(period: Period, *, engine: str, model_name: str | None, alive: Fleet, now: float) -> Asked:
    measured, readings = _stored(period, engine, model_name, now)
    predictor = Predictor(measured, tier_sizes(alive, readings, engine=engine), prices())
    return Asked(engine, model_name, period, predictor, _obstacle(engine, predictor))


def _stored(period: Period, engine: str, model_name: str | None, now: float) -> _Stored:
    """Read once for all moves of the sliders until something new is recorded."""

    def read() -> _Stored:
        measured = what_if.measured(period, engine=engine, model_name=model_name, now=now)
        readings = capacity_readings(engine=engine, model_name=model_name)
        if not measured.curve.total_tokens:
            measured = replace(measured, curve=_estimate(period, engine, model_name, readings) or measured.curve)
        return measured, readings

    read_at = what_if.last_read_at(engine)
    return read() if read_at is None else _recent.get((period, engine, model_name, read_at), read)


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
    return sources.values_list("kind", flat=True).first() or ""
