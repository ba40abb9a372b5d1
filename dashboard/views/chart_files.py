"""`/api/charts/<name>.csv` and `.parquet`: any chart's numbers as a file, for the period and filters in the address."""

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from django.http import HttpRequest, HttpResponse

from dashboard.exports.others import (
    curve_table,
    fleet_table,
    flows_table,
    frontier_table,
    models_table,
    sides_table,
    split_table,
)
from dashboard.exports.table import Table, as_csv, as_parquet
from dashboard.selectors.engines import fleet
from dashboard.selectors.flows import flows_of
from dashboard.selectors.model_tokens import by_model
from dashboard.selectors.period import Period
from dashboard.selectors.tier_costs import tier_costs
from dashboard.selectors.totals import totals
from dashboard.views.advice_data import frontier
from dashboard.views.answers import refusal
from dashboard.views.chart_data import period_of
from dashboard.views.fleet_data import asked_engines
from dashboard.views.params import BadParameterError, Query, read_query
from dashboard.views.sides import read_sides
from dashboard.views.time_charts import TIME_CHARTS
from dashboard.views.what_if_data import asked, check_known, read_sizes

Params = Mapping[str, str]


def _flows(period: Period, query: Query, params: Params, now: float) -> Table:
    return flows_table(flows_of(tier_costs(period, engine=query.engine, model_name=query.model_name)) or [])


def _curve(period: Period, query: Query, params: Params, now: float) -> Table:
    found = asked(query, now)
    return curve_table([] if found.obstacle else found.predictor.points)


def _split(period: Period, query: Query, params: Params, now: float) -> Table:
    """As it was measured, and as it is predicted for the sizes in the address, today's where it has none."""
    predictor = (found := asked(query, now)).predictor
    sizes = read_sizes(params, predictor.tiers)
    check_known(predictor, sizes)
    if found.obstacle:
        return split_table({})
    return split_table({"measured": predictor.as_measured, "predicted": predictor.predict(sizes)})


def _frontier(period: Period, query: Query, params: Params, now: float) -> Table:
    """Of the mean time to first token, or with time=p95 of the slowest one in twenty."""
    front = frontier(query, params, now)
    return frontier_table([], []) if isinstance(front, str) else frontier_table(front.tiers, front.choices)


def _fleet(period: Period, query: Query, params: Params, now: float) -> Table:
    return fleet_table(*asked_engines(query, fleet(), now))


def _models(period: Period, query: Query, params: Params, now: float) -> Table:
    engines, tokens = asked_engines(query, fleet(), now)
    return models_table(engines, {name: told.tokens for name, told in by_model(tokens).items()})


def _compare(period: Period, query: Query, params: Params, now: float) -> Table:
    """Both sides' numbers; which the right one is, `other`, `against` and `at` say (views/sides.py)."""
    left, right = read_sides(query, params, now)
    return sides_table(*(totals(side.period, engine=side.engine, model_name=side.model_name) for side in (left, right)))


OTHER_CHARTS: dict[str, Callable[[Period, Query, Params, float], Table]] = {
    "flows": _flows,
    "fleet": _fleet,
    "models": _models,
    "compare": _compare,
    "what-if-curve": _curve,
    "what-if-split": _split,
    "what-if-frontier": _frontier,
}
CHARTS = (*TIME_CHARTS, *OTHER_CHARTS)
_WRITERS = {"csv": as_csv, "parquet": as_parquet}
_TYPES = {"csv": "text/csv; charset=utf-8; header=present", "parquet": "application/vnd.apache.parquet"}
KINDS = tuple(_WRITERS)


def chart_file(request: HttpRequest, name: str, kind: str) -> HttpResponse:
    if request.method not in ("GET", "HEAD"):
        return refusal(405, "This address answers GET only.")
    now, params = time.time(), request.GET.dict()
    try:
        return file_answer(name, kind, read_query(params, now), params, now)
    except BadParameterError as error:
        return refusal(400, str(error))


def file_answer(name: str, kind: str, query: Query, params: Params, now: float) -> HttpResponse:
    """The file, to be saved under a name that says what is in it. Raises BadParameterError."""
    if name not in CHARTS:
        raise BadParameterError(f"There is no chart “{name[:40]}”; there are {', '.join(CHARTS)}.")
    if kind not in _WRITERS:
        raise BadParameterError(f"There is no kind of file “{kind[:40]}”; there are {', '.join(KINDS)}.")
    period = period_of(query, now)
    table = (
        TIME_CHARTS[name].table(period, query)
        if name in TIME_CHARTS
        else OTHER_CHARTS[name](period, query, params, now)
    )
    response = HttpResponse(_WRITERS[kind](table), content_type=_TYPES[kind])
    response["Content-Disposition"] = f'attachment; filename="{_file_name(name, kind, period)}"'
    response["Cache-Control"] = "no-store"
    return response


def _file_name(name: str, kind: str, period: Period) -> str:
    start, end = (f"{datetime.fromtimestamp(moment, UTC):%Y%m%dT%H%M%SZ}" for moment in (period.start, period.end))
    return f"tierscope-{name}-{start}-{end}.{kind}"
