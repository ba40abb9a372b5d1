"""The what-if page in sentences: what is measured, predicted and assumed, what the next GiB brings, what is missing.

Draws nothing, reads nothing.
"""

from collections.abc import Iterator, Sequence
from math import ceil, sqrt

from dashboard.charts import words
from dashboard.charts.palette import LOOKS
from dashboard.predicting import GIB, Outcome, Predictor, Sizes
from dashboard.selectors.reuse import ReuseCurve
from dashboard.selectors.tier_sizes import TierSize
from dashboard.selectors.what_if import Measured
from dashboard.sizes import format_size
from dashboard.tier_modes import share_in_words

MIN_TOKENS = 10_000  # fewer tell what chance did
EXACT_BLOCKS = 1 << 16  # the newest are all there, whatever share of those below is looked at (tiers/whatif/shards.py)
NOT_TOLD = "–"
_Z95 = 1.96
_TYPED_IN = " (typed in)"
_LEAST_SHARE = 0.0005  # of the prompt tokens; less is said as nothing
_LEAST_SECONDS = 0.0005

_UNKNOWN = (
    "tells what it hit at the sizes that it has (see Tiers), not after how much other traffic a block is asked for "
    "again, so no other size can be predicted from its metrics"
)
_TRACE = "give a trace of its requests (Mooncake's JSON lines) to manage.py whatif for the whole curve"
_IDLE = (
    "start it with --kv-cache-metrics: from the times that blocks wait for their next use (once 100 evicted ones were "
    "looked at, which is one in a hundred) this page estimates what smaller gpu tiers would serve"
)
_VLLM = f"vLLM {_UNKNOWN}; {_IDLE}, and {_TRACE}."
_WATCHED = {"vllm": _VLLM, "vllm_old": _VLLM, "sglang": f"SGLang {_UNKNOWN}; {_TRACE}."}
_OTHERS = f"This engine {_UNKNOWN}; {_TRACE}, and if it is a vLLM, {_IDLE}."


def watched_text(kind: str) -> str:
    """What can be said of a watched engine without a reuse curve, and what to switch on there."""
    return _WATCHED.get(kind, _OTHERS)


def shortage(measured: Measured) -> str:
    """Why there is too little to predict from, and how much longer it takes; "" where there is enough."""
    curve = measured.curve
    missing = MIN_TOKENS - curve.total_tokens
    if missing <= 0:
        return ""
    if not curve.total_tokens or not measured.observed_seconds:
        return (
            "No reuse was counted in this period, so that nothing can be predicted from it: send traffic (about "
            f"{MIN_TOKENS:,} prompt tokens) or choose another period."
        )
    minutes = ceil(missing / (curve.total_tokens / measured.observed_seconds) / 60)
    more = "1 more minute" if minutes == 1 else f"{minutes:,} more minutes"
    return (
        f"{words.count(curve.total_tokens)} prompt tokens were counted in this period: a prediction needs {more} of "
        "traffic like this, or a longer period."
    )


def margins(curve: ReuseCurve, points: Sequence[tuple[int, float]]) -> list[tuple[float, float]]:
    """What sampling leaves open around each (capacity, hit rate), 95 of 100 times; empty where nothing is sampled.

    Nothing down to the newest blocks. Below, the binomial error of as many blocks as were looked at there: blocks of
    one prompt come together, so that it is the least. An estimate tells about the least; the most is today's hit rate.
    """
    if curve.known_up_to is not None:
        return [(rate, points[-1][1]) for _, rate in points]
    if not curve.sample_rate or curve.sample_rate >= 1.0 or not curve.bounds:
        return []
    exact = max((rate for capacity, rate in points if capacity <= exact_tokens(curve)), default=0.0)
    deep = 1.0 - exact
    num_blocks = max(1.0, deep * curve.total_tokens * curve.sample_rate / curve.bounds[0])
    return [_margin(rate, exact, deep, num_blocks) for _, rate in points]


def _margin(rate: float, exact: float, deep: float, num_blocks: float) -> tuple[float, float]:
    part = min(1.0, (rate - exact) / deep) if deep > 0 and rate > exact else 0.0
    error = _Z95 * deep * sqrt(part * (1.0 - part) / num_blocks)
    return max(0.0, rate - error), min(1.0, rate + error)


def exact_tokens(curve: ReuseCurve) -> int:
    """How large a cache is that is counted exactly; the smallest bound is one block."""
    return EXACT_BLOCKS * curve.bounds[0]


def how_sampled(curve: ReuseCurve, points: Sequence[tuple[int, float]]) -> str:
    if curve.known_up_to is not None:
        return (
            "At smaller sizes the curve is about the least that they serve and the shade reaches to the most: blocks "
            "that are used all the time are never evicted, so that the engine does not tell of them."
        )
    if curve.sample_rate is None:
        return "The engine does not tell which share of its blocks it looks at."
    if curve.sample_rate >= 1.0 or not curve.bounds:
        return "Every block was looked at: nothing is sampled."
    widest = max((high - low for low, high in margins(curve, points)), default=0.0) / 2
    return (
        f"Up to {words.count(exact_tokens(curve))} tokens every block was looked at. Of those that lie deeper "
        f"{100 * curve.sample_rate:.3g} % were, chosen by their keys: there the hit rate is open by ± "
        f"{100 * widest:.1f} points (shaded), more where few prompts make most of the traffic."
    )


def notes(predictor: Predictor, sizes: Sizes) -> list[dict[str, str]]:
    """[{"kind": "measured" | "predicted" | "assumed", "text"}]"""
    measured = predictor.measured
    told = [
        ("measured", _measured(predictor)),
        ("predicted", _predicted(measured)),
        ("predicted", how_sampled(measured.curve, predictor.points)),
        *(("predicted", sentence) for sentence in _only_copies(predictor, sizes)),
        *(("assumed", sentence) for sentence in _assumed(predictor)),
    ]
    return [{"kind": kind, "text": text} for kind, text in told]


def tenant_notes(tenant: str | None) -> list[dict[str, str]]:
    """What is other where only one tenant's prompts are counted; [] for all."""
    if not tenant:
        return []
    told = (
        ("measured", f"Only the prompts of {tenant}. Times to first token and the bill are told for all together."),
        (
            "predicted",
            f"The tiers are shared: everybody's blocks take their room, those of {tenant} are counted. They are "
            "counted at powers of two; in between the curve has the shape of the whole engine's.",
        ),
    )
    return [{"kind": kind, "text": text} for kind, text in told]


def _measured(predictor: Predictor) -> str:
    measured = predictor.measured
    prefill = predictor.prefill_seconds
    typed = _TYPED_IN if predictor.is_prefill_typed else ""
    computing = "what computing takes is not told" if prefill is None else _thousand("computing", prefill) + typed
    loads = [
        _thousand(f"loading from {LOOKS[tier.tier].label}", predictor.load_seconds(tier.tier))
        + (_TYPED_IN if predictor.is_load_typed(tier.tier) else "")
        for tier in predictor.tiers
        if tier.tier != "gpu" and prefill is not None and _is_known(predictor, tier.tier)
    ]
    tokens = words.count(measured.costs.prompt_tokens)
    return f"Of this period: {tokens} prompt tokens by the tier that served them; {'; '.join([computing, *loads])}."


def _is_known(predictor: Predictor, tier: str) -> bool:
    return predictor.is_load_measured(tier) or predictor.is_load_typed(tier)


def _thousand(what: str, seconds_a_token: float) -> str:
    return f"{what} 1,000 tokens took {words.duration(1000 * seconds_a_token)}"


def _predicted(measured: Measured) -> str:
    total, prompt = measured.curve.total_tokens, measured.costs.prompt_tokens
    if (largest := measured.curve.known_up_to) is not None:
        return (
            f"An estimate, up to today's {words.count(largest)} tokens: from the hits in gpu and the seconds between "
            "two uses of evicted blocks (AET: Hu et al., ATC'16). Nothing tells what a larger gpu tier would serve, "
            "nor what other tiers would."
        )
    part = "" if not prompt or total > 0.99 * prompt else f" ({words.percent(total / prompt)} of the period's)"
    return (
        f"From {words.count(total)} prompt tokens{part}, each counted by the smallest LRU cache that would have served "
        "it; between two counted sizes the curve is a straight line."
    )


def _only_copies(predictor: Predictor, sizes: Sizes) -> Iterator[str]:
    """Tiers that have no part of the stack for themselves."""
    for tier, (start, end) in zip(predictor.tiers, predictor.stretches(sizes), strict=True):
        if sizes[tier.tier] and start == end:
            yield (
                f"{LOOKS[tier.tier].label} gets copies and is no larger than the faster tiers together: all it holds "
                "lies there, too, so that it serves nothing (but after a restart, and to other engines)."
            )


def _assumed(predictor: Predictor) -> Iterator[str]:
    yield (
        "The same traffic comes again, tiers are full, and requests wait as long as they did: only prefill and loads "
        "of the mean prompt change, at the seconds a token that were measured."
    )
    yield "The p95 weighs the measured times by the slowest tier read anew, as each tier's share of the tokens changes."
    hit = predictor.hit(predictor.today)
    for tier in predictor.tiers:
        yield from _of_tier(tier, is_read=hit.get(tier.tier, 0.0) > 0, predictor=predictor)


def _of_tier(tier: TierSize, is_read: bool, predictor: Predictor) -> Iterator[str]:
    label, modes = LOOKS[tier.tier].label, tier.modes
    if modes.get("policy", "lru") != "lru":
        policy = {"s3fifo": "S3-FIFO", "arc": "ARC"}.get(modes["policy"], modes["policy"])
        yield f"{label} evicts by {policy}; the prediction is for LRU, so that it is an estimate."
    if modes.get("write_mode") == "write_selective" and tier.tier != "gpu":
        yield f"{label} stores blocks once they are used again; it is counted as if it stored all: an estimate."
    if modes.get("tenant_quota", 1) < 1:
        share = share_in_words(modes["tenant_quota"])
        yield f"{label} keeps at most {share} for one tenant; it is counted as if whoever came had all of it."
    if modes.get("load") == "when_cheaper" and tier.tier != "gpu":
        yield f"{label} is read only where that is cheaper than computing; every hit is counted as read."
    if tier.tier == "remote" and tier.num_bytes:
        yield f"{label} is counted as if no other engine used it and nothing ran out of its time to live."
    if is_read and predictor.prefill_seconds is not None and not _is_known(predictor, tier.tier):
        yield f"No load from {label} was measured in this period: a hit there is taken to cost as much as computing it."


def next_gib(tier: TierSize, predictor: Predictor, sizes: Sizes, outcome: Outcome) -> str:
    """What one GiB more in this tier would bring, from `sizes` on."""
    largest = predictor.measured.curve.known_up_to
    if largest is not None and tier.tokens(sizes[tier.tier] + GIB) > largest:
        return (
            f"What the next GiB of {LOOKS[tier.tier].label} would bring, nothing tells: it would be more than today's."
        )
    more = predictor.predict({**sizes, tier.tier: sizes[tier.tier] + GIB})
    label = LOOKS[tier.tier].label
    gained, faster = more.hit_rate - outcome.hit_rate, more.hit.get(tier.tier, 0.0) - outcome.hit.get(tier.tier, 0.0)
    if gained >= _LEAST_SHARE:
        what = f"would serve {words.percent(gained)} more of the prompt tokens"
    elif faster >= _LEAST_SHARE:
        what = f"would serve {words.percent(faster)} of the prompt tokens from here instead of from another tier"
    else:
        return f"The next GiB of {label} would bring nothing: what was used again in this period has its place already."
    return f"The next GiB of {label} {what}{_slower_or_faster(outcome, more)}{_dearer(outcome, more)}."


def _slower_or_faster(before: Outcome, after: Outcome) -> str:
    if before.ttft_seconds is None or after.ttft_seconds is None:
        return ""
    change = after.ttft_seconds - before.ttft_seconds
    if abs(change) < _LEAST_SECONDS:
        return ", with the same mean time to first token"
    return f", mean time to first token {'−' if change < 0 else '+'}{words.duration(abs(change))}"


def _dearer(before: Outcome, after: Outcome) -> str:
    if before.bill is None or after.bill is None:
        return ""
    change = after.bill - before.bill
    return f", {'+' if change >= 0 else '−'}{dollars(abs(change))} a month"


def dollars(amount: float | None) -> str:
    if amount is None:
        return NOT_TOLD
    return f"${amount:,.2f}" if amount < 1_000 else f"${amount:,.0f}"


def size_text(tier: TierSize, num_bytes: int) -> str:
    return f"{tier.tokens(num_bytes):,} tokens" if num_bytes else "off"


def limit_text(tier: TierSize, num_bytes: int) -> str:
    """Why this size cannot be applied; "" where it can, as far as the engine tells."""
    if tier.most_bytes is not None and num_bytes > max(tier.most_bytes, tier.num_bytes):
        return f"The machine has room for {format_size(tier.most_bytes)}."
    if num_bytes < tier.least_bytes:
        return f"The engine needs at least {format_size(tier.least_bytes)}."
    return ""
