"""What charts read: sums by step against a naive oracle, gaps as None, rates that never divide by nothing."""

import math
import re
from collections import defaultdict
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dashboard import valkey
from dashboard.models import EngineRun, RequestLog, Retention, Series, Source, TierChange
from dashboard.selectors.latency import quantile, ttft_series
from dashboard.selectors.marks import size_changes
from dashboard.selectors.period import MAX_STEPS, Period, PeriodError, between, last
from dashboard.selectors.present import engines_and_models, freshness, has_traffic
from dashboard.selectors.requests import request_page
from dashboard.selectors.residency import residency_series
from dashboard.selectors.tokens import hit_rate_series, rates, token_series
from dashboard.selectors.totals import totals
from dashboard.services import chunks
from dashboard.services.amounts import Amount
from dashboard.services.head import add_amounts
from dashboard.services.increases import create_series
from dashboard.services.recording import record
from dashboard.services.sources import ensure_embedded
from tests.dashboard.seeded import seed_requests
from tests.dashboard.stores import empty
from tests.dashboard.told import Engine, moment

pytestmark = pytest.mark.usefixtures("store")

START = 1_800_000_000
PERIOD = Period(START, START + 100, 10)


class _Store:
    """Adds amounts by name, and remembers them for the oracle."""

    def __init__(self) -> None:
        empty()
        self.source = Source.objects.create(name="s", kind="embedded")
        self.amounts: list[tuple[str, str, str, str, int, int]] = []

    def add(self, metric: str, at: int, value: int, tier: str = "", engine: str = "a", detail: str = "") -> None:
        create_series([(self.source.pk, engine, ("m", metric, tier, detail))])
        series = Series.objects.get(engine=engine, metric=metric, cache_tier=tier, detail=detail)
        with transaction.atomic():
            add_amounts([Amount(series.pk, at, value)])
        if at % 20 < 10:  # as if it was seen a while ago
            chunks.settle(now=moment(at + 2 * chunks.HEAD_SECONDS))
        self.amounts.append((engine, metric, tier, detail, at, value))

    def naive(self, period: Period, metric: str, tier: str, engine: str | None) -> list[int]:
        sums: dict[int, int] = defaultdict(int)
        for its_engine, its_metric, its_tier, _, at, value in self.amounts:
            if (its_metric, its_tier) == (metric, tier) and engine in (None, its_engine):
                sums[(at - period.start) // period.step_seconds] += value
        return [sums[slot] for slot in range(len(period.starts))]


moments = st.integers(START - 7200, START + 7199)
facts = st.lists(
    st.tuples(
        st.sampled_from(
            [("prompt_tokens", ""), ("computed_tokens", ""), ("hit_tokens", "gpu"), ("hit_tokens", "disk")]
        ),
        moments,
        st.integers(0, 10_000),
        st.sampled_from("ab"),
    ),
    max_size=25,
)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(facts, st.sampled_from([10, 60, 120, 3600]), st.sampled_from([None, "a"]))
def test_token_series_are_the_naive_sums(told: list[Any], step: int, engine: str | None) -> None:
    store = _Store()
    period = Period(START - 7200, START + 7200, step)
    for (metric, tier), at, value, its_engine in told:
        store.add(metric, at, value, tier, its_engine)
    for start in period.starts[:: max(1, len(period.starts) // 3)]:
        store.add("scrapes", start, 1)
    found = token_series(period, engine=engine)
    observed = store.naive(period, "scrapes", "", engine)

    def expected(metric: str, tier: str = "") -> list[int | None]:
        values = store.naive(period, metric, tier, engine)
        return [value if seen else None for value, seen in zip(values, observed, strict=True)]

    assert found["starts"] == period.starts
    assert found["prompt"] == expected("prompt_tokens")
    tellers = {its_engine for (metric, _), _, _, its_engine in told if metric == "computed_tokens"}
    is_told = engine in tellers if engine else bool(tellers)
    assert found["computed"] == (expected("computed_tokens") if is_told else [None] * len(period.starts))
    assert found["hit"] == {tier: expected("hit_tokens", tier) for tier in found["hit"]}


def test_an_empty_store_gives_gaps_and_no_tier() -> None:
    assert token_series(PERIOD) == {"starts": PERIOD.starts, "prompt": [None] * 10, "computed": [None] * 10, "hit": {}}
    assert hit_rate_series(PERIOD)["total"] == [None] * 10
    assert ttft_series(PERIOD)["tiers"] == residency_series(PERIOD)["tiers"] == {}


def test_a_rate_is_none_where_nothing_was_asked_and_zero_where_all_missed() -> None:
    store = _Store()
    for start in (START, START + 10, START + 20):
        store.add("scrapes", start, 1)
    store.add("prompt_tokens", START + 10, 100)
    store.add("prompt_tokens", START + 20, 100)
    store.add("hit_tokens", START + 20, 25, "gpu")
    store.add("hit_tokens", START + 20, 15, "disk")
    found = hit_rate_series(PERIOD)
    assert found["total"][:4] == [None, 0.0, 0.4, None]
    assert found["tiers"]["gpu"][:4] == [None, 0.0, 0.25, None]
    assert found["conditional"]["disk"][:4] == [None, 0.0, 0.2, None]


def test_a_conditional_rate_is_none_where_no_token_reached_the_tier() -> None:
    found = rates({"starts": [0], "prompt": [10], "computed": [0], "hit": {"gpu": [10], "cpu": [0]}})
    assert found["conditional"] == {"gpu": [1.0], "cpu": [None]}


def test_unattributed_hits_count_in_the_total_and_in_no_known_tier() -> None:
    found = rates({"starts": [0], "prompt": [10], "computed": [2], "hit": {"gpu": [5], "unattributed": [3]}})
    assert found["total"] == [0.8]
    assert found["tiers"]["unattributed"] == [0.3]
    assert set(found["conditional"]) == {"gpu"}


def test_residency_is_the_mean_over_the_step_and_the_sum_over_engines() -> None:
    store = _Store()
    for at, value in ((START, 100), (START + 5, 200), (START + 10, 300)):
        store.add("resident_tokens", at, value, "cpu")
    store.add("resident_tokens", START + 3, 1000, "cpu", engine="b")
    store.add("capacity_tokens", START, 500, "cpu")
    found = residency_series(Period(START, START + 20, 20))
    assert found["tiers"] == {"cpu": {"resident": [1200], "capacity": [500]}}


def test_totals_stand_beside_the_period_before() -> None:
    store = _Store()
    for at, prompt, hit in ((START - 50, 100, 20), (START + 50, 300, 240)):
        store.add("scrapes", at, 1)
        store.add("prompt_tokens", at, prompt)
        store.add("hit_tokens", at, hit, "gpu")
        store.add("requests", at, 2, detail="stop")
        store.add("ttft", at, 2, detail="1.0")
    found = totals(PERIOD)
    assert (found["prompt_tokens"], found["hit_tokens"], found["hit_rate"]) == (300, {"gpu": 240}, 0.8)
    assert (found["requests"], found["finish_reasons"], found["ttft_p50"]) == (2, {"stop": 2}, 0.5)
    assert found["previous"]["prompt_tokens"] == 100


def test_requests_that_no_engine_tells_are_unknown_and_not_none() -> None:
    store = _Store()
    store.add("scrapes", START + 50, 1)
    store.add("prompt_tokens", START + 50, 300)
    assert totals(PERIOD)["requests"] is None


def test_without_an_observation_there_is_no_period_before() -> None:
    _Store().add("scrapes", START, 1)
    found = totals(PERIOD)
    assert found["previous"] is None
    assert found["hit_rate"] is None


def test_ttft_is_interpolated_between_known_bounds() -> None:
    store = _Store()
    store.add("ttft", START, 0, "gpu", detail="1.0")  # a bound that never counted is still a bucket's lower edge
    store.add("ttft", START, 10, "gpu", detail="2.0")
    store.add("ttft", START + 10, 3, "", detail="+Inf")
    found = ttft_series(PERIOD)["tiers"]
    assert found["gpu"]["p50"][:2] == [1.5, None]
    assert found["gpu"]["p95"][0] == pytest.approx(1.95)
    assert found["none"]["p50"][1] == 2.0
    assert found["gpu"]["count"][:2] == [10, 0]


@given(st.dictionaries(st.sampled_from([0.1, 0.5, 1.0, 5.0, math.inf]), st.integers(0, 50)), st.floats(0.01, 0.99))
def test_a_quantile_lies_in_the_bucket_that_holds_its_rank(histogram: dict[float, int], share: float) -> None:
    value = quantile(share, histogram)
    ranks = [bound for bound, count in sorted(histogram.items()) for _ in range(count)]
    if not ranks:
        assert value is None
        return
    bound = ranks[min(len(ranks) - 1, math.ceil(share * len(ranks)) - 1)]
    lower = max((each for each in histogram if each < bound), default=0.0)
    assert value is not None
    assert lower <= value <= (lower if math.isinf(bound) else bound)


def test_marks_name_what_changed_and_who_did_it() -> None:
    user, _ = User.objects.get_or_create(username="ana")
    change = {"engine": "local", "cache_tier": "cpu", "action": "resize", "author": user}
    TierChange.objects.create(old_value="0", new_value=str(2**30), at=moment(START + 5), **change)
    TierChange.objects.create(old_value="5", new_value="6", at=moment(START - 5), **change)
    (mark,) = size_changes(PERIOD, engine="local")
    assert mark["at"] == START + 5
    assert mark["text"] == "local cpu resized: 0 B → 1 GiB, ▲ switched on (ana)"
    assert size_changes(PERIOD, engine="other") == []


def test_engines_and_models_are_those_with_series() -> None:
    store = _Store()
    store.add("scrapes", START, 1, engine="b")
    store.add("scrapes", START, 1, engine="a")
    assert engines_and_models() == {"engines": ["a", "b"], "replays": [], "models": ["m"]}


def test_freshness_tells_when_a_source_was_last_read_and_an_engine_last_seen() -> None:
    source = _Store().source
    assert freshness(moment(START))[0]["is_stale"]
    Source.objects.update(last_ok_at=moment(START - 5))
    EngineRun.objects.create(source=source, engine="a", boot_id="x", read_at=moment(START - 4))
    (told,) = freshness(moment(START))
    assert (told["is_stale"], told["last_ok_at"], told["age_seconds"]) == (False, START - 5, 4.0)


def test_the_request_log_is_paged_within_bounds() -> None:
    page = request_page(-3, size=10**9)
    assert (page.rows, page.number, page.has_next) == ([], 1, False)


def test_the_request_log_can_be_narrowed_to_a_tenant_or_to_those_without_one() -> None:
    seed_requests(3)
    first = RequestLog.objects.order_by("pk")[0]
    RequestLog.objects.filter(pk=first.pk).update(tenant="acme")
    assert [row.pk for row in request_page(tenant="acme").rows] == [first.pk]
    assert len(request_page(tenant="common").rows) == 2
    assert request_page(tenant="umbrella").rows == []


def test_a_page_behind_the_last_is_the_last() -> None:
    seed_requests(7)
    page = request_page(500, size=3)
    assert (len(page.rows), page.number, page.has_next) == (1, 3, False)
    assert request_page(500, size=7).number == 1


@pytest.mark.parametrize(
    ("seconds", "step", "resolution"),
    [
        (300, 10, 10),
        (3600, 20, 10),
        (6 * 3600, 120, 60),
        (86400, 600, 60),
        (7 * 86400, 3600, 3600),
        (30 * 86400, 21600, 3600),
    ],
)
def test_a_period_gets_the_finest_step_that_a_screen_can_show(seconds: int, step: int, resolution: int) -> None:
    period = last(seconds, now=START + 3)
    assert (period.step_seconds, period.resolution) == (step, resolution)
    assert period.end - period.start == seconds
    assert period.end >= START + 3


@given(st.integers(1, 20 * 366 * 86400), st.integers(0, 4 * 366 * 86400))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_every_period_has_a_bounded_number_of_steps_and_holds_its_end(seconds: int, ago: int) -> None:
    end = START - ago
    period = between(end - seconds, end, now=START)
    assert 1 <= len(period.starts) <= MAX_STEPS
    assert period.end - period.step_seconds < end <= period.end


@pytest.mark.parametrize("second", [0.0, 0.001, 0.9, 1.0, 19.999])
def test_the_newest_bucket_is_shown_from_its_first_moment_on(second: float) -> None:
    assert last(3600, now=START + second).end == START + (20 if second else 0)


def test_an_old_hour_is_shown_by_the_minute_when_its_seconds_have_expired() -> None:
    Retention.objects.create(ten_seconds_hours=48, minutes_days=14)
    assert between(START - 5 * 86400, START - 5 * 86400 + 3600, now=START).step_seconds == 60
    assert between(START - 50 * 86400, START - 50 * 86400 + 3600, now=START).step_seconds == 3600


def test_an_impossible_period_is_refused_with_a_sentence() -> None:
    with pytest.raises(PeriodError, match="ends before it starts"):
        between(START, START - 1, now=START)
    with pytest.raises(PeriodError, match="20 years"):
        between(START - 30 * 366 * 86400, START, now=START)


@pytest.mark.usefixtures("valkey")
def test_what_is_recorded_is_what_is_selected() -> None:
    source, engine = ensure_embedded(), Engine()
    engine.serve({"gpu": 64, "cpu": 16}, computed=20)
    engine.publish(START + 20)
    Source.objects.update(due_at=moment(START))
    record(source.pk, now=moment(START + 20), connection=valkey.client())
    found = token_series(PERIOD)
    assert sum(filter(None, found["prompt"])) == 100
    assert {tier: sum(filter(None, values)) for tier, values in found["hit"].items()} == {"gpu": 64, "cpu": 16}
    assert residency_series(PERIOD)["tiers"]["gpu"]["capacity"][1] == 1000


def test_whether_there_was_traffic_is_known_without_looking_at_every_bucket(store: str) -> None:
    filled = _Store()
    assert not has_traffic()
    filled.add("computed_tokens", START, 5)
    assert not has_traffic()
    filled.add("prompt_tokens", START, 5)
    with CaptureQueriesContext(connection) as asked:
        assert has_traffic()
    if store == "sqlite":
        with connection.cursor() as cursor:
            for query in asked.captured_queries:
                cursor.execute(f"EXPLAIN QUERY PLAN {query['sql']}")
                assert not any(re.search(r"SCAN dashboard_(total)?(head|chunk)", row[3]) for row in cursor.fetchall())
