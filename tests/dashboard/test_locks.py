"""Writers that meet wait for each other, in one order, and what one has looked at is still there when it stores."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from django.db import connection, transaction

from dashboard.models import Series, Source, TotalSeries
from dashboard.services import totals
from dashboard.services.increases import create_series
from dashboard.services.recording import Look, _finish_all, claim_many
from tests.dashboard.stores import empty, in_a_thread
from tests.dashboard.told import moment

pytestmark = pytest.mark.usefixtures("store")

NOW = moment(1_800_000_000)
FACT = ("m", "prompt_tokens", "", "")


def _begun(pool: ThreadPoolExecutor, call: Callable[[], Any]) -> "Future[Any]":
    """Runs until it is over, or waits for somebody."""
    future = pool.submit(in_a_thread, call)
    with suppress(TimeoutError):
        future.result(0.5)
    return future


def test_claims_of_several_sources_end_in_the_order_of_their_ids(store: str) -> None:
    """On PostgreSQL rows come as they were last written, where the plan is to go through all of them."""
    if store == "sqlite":
        pytest.skip("it has one writer")
    sources = [Source.objects.create(name=f"e{number}", kind="vllm", due_at=NOW) for number in range(2)]
    claimed = claim_many([source.pk for source in reversed(sources)], NOW)
    Source.objects.filter(pk=sources[0].pk).update(name="later in the table")

    def end() -> None:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SET LOCAL enable_indexscan = off; SET LOCAL enable_bitmapscan = off")
                cursor.execute("SET LOCAL enable_nestloop = off; SET LOCAL enable_mergejoin = off")
            _finish_all([(source, Look(NOW, 0.1)) for source in claimed])

    def hold(source: Source) -> None:
        list(Source.objects.select_for_update().filter(pk=source.pk))

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            hold(sources[0])
            ended = _begun(pool, end)
            hold(sources[1])
        ended.result()
    assert not Source.objects.filter(due_at__lte=NOW).exists()


@contextmanager
def _an_empty_total() -> Any:
    empty()
    source = Source.objects.create(name="e", kind="vllm")
    TotalSeries.objects.create(**dict(zip(("model_name", "metric", "cache_tier", "detail"), FACT, strict=True)))
    with ThreadPoolExecutor(1) as pool:
        yield source, pool
    assert Series.objects.get().total_id == TotalSeries.objects.get().pk


def test_a_total_that_a_new_series_is_about_to_belong_to_is_not_removed_as_empty() -> None:
    with _an_empty_total() as (source, pool):
        with transaction.atomic():
            create_series([(source.pk, "e", FACT)])
            removed = _begun(pool, totals.remove_empty)
        removed.result()


def test_a_total_that_is_being_removed_is_made_again_for_a_new_series(monkeypatch: pytest.MonkeyPatch) -> None:
    with _an_empty_total() as (source, pool):
        with transaction.atomic():
            TotalSeries.objects.select_for_update().get()
            created = _begun(pool, lambda: create_series([(source.pk, "e", FACT)]))
            TotalSeries.objects.all().delete()
        created.result()
