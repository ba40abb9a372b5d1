"""What other policies and write modes would do, in sentences. Draws nothing, reads nothing."""

from collections.abc import Sequence
from typing import Any

from dashboard.advising import hit_of
from dashboard.charts import words
from dashboard.models import PolicySearch
from dashboard.policy_words import in_words
from dashboard.predicting import Predictor
from dashboard.selectors.policy_search import Finding, Trace, today
from dashboard.zone import in_words as moment

_MOST_ROWS = 5
_UNKNOWN = (
    "The curve is LRU's, with the write modes of today: what S3-FIFO, ARC or other modes would serve, it cannot tell"
)


def policies_text(search: PolicySearch | None, trace: Trace | None, *, is_ours: bool, is_current: bool) -> str:
    """How far trying them is, or what is missing for it."""
    if search is None:
        return _none(trace, is_ours)
    if search.state == PolicySearch.State.FAILED:
        return f"Trying other policies and write modes failed: {search.error}"
    if search.state != PolicySearch.State.DONE:
        return f"Other policies and write modes are being tried on {search.file_name}: {_so_far(search)}."
    if not is_current:
        return "The tiers evict or are written to in other ways than when policies were tried: try them again."
    when = f"at {moment(search.created_at)} on {search.file_name}"
    return f"Other policies and write modes were tried {when}: {_done(search)}."


def _none(trace: Trace | None, is_ours: bool) -> str:
    if trace is not None:
        return f"{_UNKNOWN}. They can be tried on {trace.file_name}, which takes a minute or two of the worker."
    if is_ours:
        missing = "With TIERSCOPE_RECORD_TRACE=1 GiB the engine records its traffic, and they can be tried on that."
    else:
        missing = "Replay a trace of its requests (Replays), and choose that replay here: its trace is what they need."
    return f"{_UNKNOWN}. {missing}"


def _so_far(search: PolicySearch) -> str:
    return f"{len(search.results):,} simulations are done" if search.sample else "its trace is being read"


def _done(search: PolicySearch) -> str:
    told = search.sample
    part = "all of its" if told["is_all"] else "its first"
    blocks = (
        "every block" if told["rate"] == 1 else f"{100 * told['rate']:.3g} % of the blocks, in tiers as much smaller"
    )
    sizes = "today’s sizes" if len(search.sizes) == 1 else f"{len(search.sizes)} combinations of sizes"
    return f"{part} {told['requests']:,} requests, {blocks}, {len(search.results):,} simulations at {sizes}"


def policy_rows(predictor: Predictor, found: Sequence[Finding]) -> list[dict[str, Any]]:
    """The best at today's sizes, by hit rate, beside what LRU is predicted to do with today's write modes."""
    names, as_set = [tier.tier for tier in predictor.tiers], today(predictor.tiers)
    lru = sum(predictor.hit(predictor.today).values())
    rates = [
        (sum(hit_of(predictor, each).values()), in_words(names, each.setup, as_set) or "as they are today")
        for each in found
        if dict(each.sizes) == predictor.today
    ]
    best = sorted(rates, key=lambda pair: -pair[0])[:_MOST_ROWS]
    return [{"name": name, "hit_rate": round(rate, 5), "text": _row(name, rate, lru)} for rate, name in best]


def _row(name: str, rate: float, lru: float) -> str:
    points = f"{100 * (rate - lru):+.1f}".replace("-", "−")
    return f"{name}: {words.percent(rate)} hits, {points} points against LRU as it is written to today"
