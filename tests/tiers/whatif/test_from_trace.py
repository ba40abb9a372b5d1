"""Block accesses of traces: the known answers of real ones, and whose requests are counted."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tiers.traces import TraceError, TraceRequest
from tiers.whatif import Accesses, HitCurve, TouchOrder, read_trace, stack_positions, traced_accesses

TRACE = Path(__file__).parents[4] / "shared" / "traces" / "mooncake_conversation_trace.jsonl.gz"


@pytest.mark.skipif(not TRACE.exists(), reason=f"the trace is not at {TRACE}")
@pytest.mark.parametrize(
    ("order", "known"),
    [
        ("head", {None: 0.3664, 100_000: 0.3637, 50_000: 0.3546, 30_000: 0.3257, 10_000: 0.2112, 1_000: 0.0445}),
        ("tail", {10_000: 0.2116}),
    ],
)
def test_the_known_answers_on_an_hour_of_conversations(order: str, known: dict[int | None, float]) -> None:
    accesses = read_trace(TRACE)
    assert (accesses.num_requests, accesses.num_accesses, accesses.num_unique) == (12_031, 288_500, 182_790)
    assert (accesses.num_asked, accesses.num_unique_asked, accesses.never_tokens) == (288_500, 182_790, 0)
    curve = HitCurve()
    curve.add(stack_positions(accesses, TouchOrder(order)))
    rates = [round(hits / curve.total, 4) for hits in curve.at([*known])]
    assert rates == list(known.values())


def request(tenant: str, *ids: str, fills: tuple[str, ...] = (), tail: int = 0) -> TraceRequest:
    return TraceRequest(0.0, tenant, "", ids, [4] * len(ids), 4 * len(ids) + tail, 1, fills)


def hits(accesses: Accesses, capacity: int | None) -> tuple[int, int]:
    """Of blocks, and of tokens."""
    positions, blocks, tokens = stack_positions(accesses), HitCurve(), HitCurve()
    blocks.add(positions, accesses.is_asked.astype(np.int64))
    tokens.add(positions, accesses.num_tokens)
    return blocks.hits(capacity), tokens.hits(capacity)


def test_blocks_that_answers_filled_can_be_hit_and_ask_for_nothing() -> None:
    first = request("", "a", fills=("b", "c"), tail=3)
    accesses = traced_accesses([first, request("", "a", "b"), first]).accesses
    assert hits(accesses, None) == (3, 12)
    assert hits(accesses, 2) == (3, 12)
    assert (accesses.num_asked, accesses.num_unique_asked, accesses.num_unique) == (4, 2, 3)
    assert (accesses.total_tokens, accesses.never_tokens) == (22, 6)


def test_other_tenants_take_their_room_and_are_not_counted() -> None:
    traced = traced_accesses([request("x", "a"), request("y", "b", tail=1), request("x", "a"), request("y", "b")])
    assert hits(traced.accesses, 2) == (2, 8)
    x = traced.of(tenant="x")
    assert (hits(x, 2), hits(x, 1)) == ((1, 4), (0, 0))
    assert (x.num_counted, x.num_asked, x.num_unique_asked, x.total_tokens, x.never_tokens) == (2, 2, 1, 8, 0)
    with pytest.raises(ValueError, match="no tenant “z”; it has “x”, “y”"):
        traced.of(tenant="z")


def test_a_model_is_counted_alone_also_for_one_tenant() -> None:
    told = [replace(request(tenant, "a"), model_name=model) for tenant, model in ("xm", "xn", "ym", "xm")]
    traced = traced_accesses(told)
    assert traced.of(model="m").num_counted == 3
    assert (traced.of(model="m", tenant="x").num_counted, hits(traced.of(model="m", tenant="x"), 1)) == (2, (1, 4))
    with pytest.raises(ValueError, match="no model “z”; it has “m”, “n”"):
        traced.of(model="z")


def test_a_file_without_requests_is_no_trace(tmp_path: Path) -> None:
    (tmp_path / "trace").write_text("\n")
    with pytest.raises(TraceError, match="has no requests"):
        read_trace(tmp_path / "trace")
