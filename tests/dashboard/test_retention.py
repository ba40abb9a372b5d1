"""Expiry deletes what is old and nothing else; what it deletes is still in the coarser resolutions."""

import pytest
from django.db import transaction
from django.utils import timezone

from dashboard.chunks import NUM_BUCKETS, Buckets, pack
from dashboard.models import Chunk, EngineRun, Head, RequestLog, Retention, Series, Source
from dashboard.services import chunks
from dashboard.services import retention as service
from dashboard.services.amounts import Amount
from dashboard.services.head import add_amounts
from dashboard.services.integrity import check
from dashboard.services.retention import expire
from tests.dashboard.told import moment
from tests.stored import rows

pytestmark = pytest.mark.usefixtures("store")

DAY = 86400
NOW = 1_800_000_000 // DAY * DAY + 3_700


def one_series() -> Series:
    source = Source.objects.create(name="embedded", kind="embedded")
    return Series.objects.create(source=source, engine="local", model_name="m", metric="prompt_tokens")


def add(series: Series, at: int, value: int) -> None:
    """As it is some time after it was seen."""
    with transaction.atomic():
        add_amounts([Amount(series.pk, at, value)])
    chunks.settle(now=moment(at + 2 * chunks.HEAD_SECONDS))


def total(resolution: int) -> int:
    return sum(row.value for row in rows(resolution=resolution))


def log(index: int, finished_at: float) -> RequestLog:
    return RequestLog.objects.create(
        request_id=f"r{index}",
        engine="local",
        model_name="m",
        received_at=moment(finished_at - 1),
        finished_at=moment(finished_at),
        prompt_tokens=1,
        computed_tokens=1,
        generated_tokens=1,
        finish_reason="stop",
    )


def test_old_fine_buckets_go_and_their_amounts_stay_in_the_coarser_ones() -> None:
    series = one_series()
    for days_ago in range(0, 421, 20):
        add(series, NOW - days_ago * DAY, 7)
    expire(now=moment(NOW))
    assert [total(each) // 7 for each in (10, 60, 3600, 86400)] == [1, 1, 21, 22]
    check(now=moment(NOW))


def test_a_chunk_stays_as_long_as_one_of_its_buckets_is_kept() -> None:
    series = one_series()
    oldest = (NOW - 48 * 3_600) // DAY * DAY
    for at in (oldest - 10, oldest):
        add(series, at, 1)
    assert expire(now=moment(NOW)).chunks == 1
    assert total(10) == 1
    check(now=moment(NOW))


def test_expiry_in_tiny_batches_ends_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    source = one_series().source
    for number in range(5):
        add(Series.objects.create(source=source, engine=f"e{number}", metric="prompt_tokens"), NOW - 10 * DAY, 1)
    monkeypatch.setattr(service, "_TOGETHER", 2)
    assert expire(now=moment(NOW)).chunks == 5
    assert total(60) == 5


def test_a_second_expiry_finds_nothing_more() -> None:
    add(one_series(), NOW - 10 * DAY, 1)
    assert expire(now=moment(NOW)).chunks == 1
    assert expire(now=moment(NOW)).chunks == 0


def test_the_request_log_is_bounded_by_age_and_by_rows() -> None:
    Retention.objects.create(requests_days=3, requests_rows=4)
    for index in range(12):
        log(index, NOW - index * DAY / 2)
    expire(now=moment(NOW))
    assert sorted(RequestLog.objects.values_list("request_id", flat=True)) == ["r0", "r1", "r2", "r3"]


def test_runs_that_ended_are_forgotten_but_a_watched_engines_state_is_kept() -> None:
    source = one_series().source
    Source.objects.update(last_ok_at=moment(NOW))
    for boot_id in ("", "old", "new"):
        read_at = NOW if boot_id == "new" else NOW - 8 * DAY
        EngineRun.objects.create(source=source, engine="local", boot_id=boot_id, read_at=moment(read_at))
    assert expire(now=moment(NOW)).runs == 1
    assert sorted(EngineRun.objects.values_list("boot_id", flat=True)) == ["", "new"]


def test_a_run_is_not_forgotten_while_nobody_looked() -> None:
    source = one_series().source
    Source.objects.update(last_ok_at=moment(NOW - 8 * DAY))
    EngineRun.objects.create(source=source, engine="local", boot_id="silent", read_at=moment(NOW - 8 * DAY))
    assert expire(now=moment(NOW)).runs == 0


def test_without_a_saved_retention_its_defaults_hold() -> None:
    expire(now=timezone.now())
    assert not Retention.objects.exists()


def test_a_damaged_bucket_is_found() -> None:
    add(one_series(), NOW, 7)
    Chunk.objects.filter(resolution=60).update(packed=pack(Buckets([8] * NUM_BUCKETS, [1] * NUM_BUCKETS)))
    with pytest.raises(AssertionError, match="buckets differ from the finer ones that make them up"):
        check(now=moment(NOW))


def test_a_bucket_whose_series_is_gone_is_found() -> None:
    Head.objects.create(series_id=77, start_at=0, value=1, num_samples=1)
    with pytest.raises(AssertionError, match="Series that are gone have buckets"):
        check(now=moment(NOW))
