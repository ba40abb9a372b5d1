"""Random engines, restarts, deaths, crashes of the recorder and expiry, against a naive oracle: exact to the token."""

from collections import Counter
from typing import Any

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dashboard import valkey
from dashboard.models import Resolution, Series, Source
from dashboard.services.integrity import check
from dashboard.services.recording import record
from dashboard.services.retention import expire
from dashboard.services.sources import ensure_embedded
from tests.dashboard.stores import empty
from tests.dashboard.told import TIERS, Engine, moment, stored, telling
from tests.stored import rows

pytestmark = pytest.mark.usefixtures("valkey", "store")

START = 1_800_000_000
exactly = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
tokens = st.integers(0, 500)
requests = st.tuples(
    st.just("serve"), st.integers(0, 1), st.fixed_dictionaries(dict.fromkeys(TIERS, tokens)), st.integers(1, 500)
)
waits = st.tuples(st.just("wait"), st.sampled_from([1, 4, 7, 10, 30, 130, 4000]))
events = st.one_of(
    requests,
    requests,
    waits,
    waits,
    st.tuples(st.just("restart"), st.integers(0, 1)),
    st.tuples(st.just("record")),
    st.tuples(st.just("record")),
    st.tuples(st.just("crash"), st.integers(0, 30)),
    st.tuples(st.just("expire"), st.integers(1, 20)),
)


class _Crashed(BaseException):
    pass


class _World:
    """Two embedded engines, one recorder, one clock."""

    def __init__(self) -> None:
        empty()
        valkey.client().flushall()
        self.source, self.now = ensure_embedded(), float(START)
        self.engines = [Engine("a"), Engine("b")]

    def do(self, event: tuple[Any, ...]) -> None:
        getattr(self, event[0])(*event[1:])

    def serve(self, index: int, hits: dict[str, int], computed: int) -> None:
        self.engines[index].serve(hits, computed)

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def restart(self, index: int) -> None:
        """The engine's last word is published; then a new process starts."""
        self.now += 1
        self.engines[index].publish(self.now, is_alive=False)
        self.engines[index].restart()

    def record(self) -> None:
        self.now += 1
        for engine in self.engines:
            engine.publish(self.now)
        Source.objects.filter(pk=self.source.pk).update(due_at=moment(self.now))
        record(self.source.pk, now=moment(self.now), connection=valkey.client())

    def crash(self, after: int) -> None:
        num_left = after

        def wrapper(execute: Any, *args: Any) -> Any:
            nonlocal num_left
            num_left -= 1
            if num_left < 0:
                raise _Crashed
            return execute(*args)

        try:
            with connection.execute_wrapper(wrapper):
                self.record()
        except _Crashed:
            pass

    def expire(self, days: int) -> None:
        self.record()
        self.now += days * 86400
        expire(now=moment(self.now))


@exactly
@given(st.lists(events, max_size=20))
def test_buckets_of_every_resolution_add_up_to_what_the_engines_counted(story: list[tuple[Any, ...]]) -> None:
    world = _World()
    for event in story:
        world.do(event)
    world.record()
    check(now=moment(world.now))
    for engine in world.engines:
        assert stored(86400, engine.name) == +engine.truth
        assert stored(3600, engine.name) == +engine.truth  # nothing of these stories is older than the hours are kept
    if not any(event[0] == "expire" for event in story):
        assert all(stored(each) == +world.engines[0].truth + world.engines[1].truth for each in (10, 60))


@exactly
@given(st.lists(events, max_size=20))
def test_prompt_is_hits_plus_computed_in_every_bucket(story: list[tuple[Any, ...]]) -> None:
    world = _World()
    for event in story:
        world.do(event)
    world.record()
    sides: dict[tuple[int, int], list[int]] = {}
    for row in rows():
        side = sides.setdefault((row.resolution, row.start_at), [0, 0])
        if row.metric == Series.Metric.PROMPT_TOKENS:
            side[0] += row.value
        elif row.metric in (Series.Metric.HIT_TOKENS, Series.Metric.COMPUTED_TOKENS):
            side[1] += row.value
    assert all(prompt == parts for prompt, parts in sides.values())


@exactly
@given(st.lists(st.tuples(st.integers(0, 2**40), st.integers(0, 2**40), st.sampled_from([3, 10, 700])), min_size=1))
def test_a_watched_counters_increase_is_what_promql_calls_it(values: list[tuple[int, int, int]]) -> None:
    empty()
    source = Source.objects.create(name="prod", kind="vllm_old", url="http://prod/metrics")
    now, expected, previous = START, Counter({"prompt": 0, "gpu": 0}), None
    for prompt, hits, seconds in values:
        now += seconds
        text = f"vllm:prefix_cache_queries_total {prompt}\nvllm:prefix_cache_hits_total {hits}\n"
        Source.objects.filter(pk=source.pk).update(due_at=moment(now))
        assert record(source.pk, now=moment(now), connection=valkey.client(), fetch_text=telling(text))
        if previous is not None:
            expected["prompt"] += prompt - previous[0] if prompt >= previous[0] else prompt
            expected["gpu"] += hits - previous[1] if hits >= previous[1] else hits
        previous = (prompt, hits)
    for resolution in Resolution.values:
        sums = stored(resolution)
        assert (sums["prompt_tokens", ""], sums["hit_tokens", "gpu"]) == (expected["prompt"], expected["gpu"])
    check(now=moment(now))
