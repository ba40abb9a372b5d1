"""A store from before buckets were packed, or kept by their place, is taken over with all it holds."""

import random
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from dashboard import counters
from dashboard.gauge_steps import STEPS
from dashboard.models import Chunk, EngineRun, Head, Resolution, Series, Source, TotalChunk, TotalHead, TotalSeries
from dashboard.services.amounts import Amount
from dashboard.services.chunks import add, sums_of
from dashboard.services.head import add_amounts
from dashboard.services.increases import create_series
from dashboard.services.removal import remove_sources
from tests.dashboard.stores import sqlite_settings, used_as_default
from tests.dashboard.told import moment
from tests.stored import rows, total_rows

AT = 1_800_000_000
_OLDEST = dict.fromkeys(Resolution.values, 0)


@pytest.fixture(params=["sqlite", "postgresql"])
def no_tables_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'old.sqlite3'}"
    name = f"old_{request.function.__name__[:40]}"
    server: str = request.getfixturevalue("postgres_url")
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
    return server.replace("/postgres?", f"/{name}?")


def test_buckets_of_an_older_version_are_kept_and_go_on_adding_up(no_tables_url: str, django_db_blocker: Any) -> None:
    with used_as_default(no_tables_url, django_db_blocker, **sqlite_settings(no_tables_url)):
        call_command("migrate", "dashboard", "0011", verbosity=0)
        old = MigrationExecutor(connection).loader.project_state(("dashboard", "0011_backfills")).apps
        source = old.get_model("dashboard", "Source").objects.create(name="old", kind="embedded")
        facts = [(1, "local", "prompt_tokens"), (2, "local", "resident_tokens"), (3, "other", "prompt_tokens")]
        for pk, engine, metric in facts:
            old.get_model("dashboard", "Series").objects.create(
                pk=pk, source=source, engine=engine, model_name="m", metric=metric
            )
            with connection.cursor() as cursor:
                cursor.execute(
                    "INSERT INTO dashboard_bucket (series_id, resolution, start_at, value, num_samples)"
                    f" VALUES ({pk}, 10, {AT}, 7, 1), ({pk}, 60, {AT - AT % 60}, 7, 1)"
                )
        call_command("migrate", verbosity=0)
        with transaction.atomic():
            add_amounts([Amount(1, AT, 5)])
        told = {row.resolution: row.value for row in rows(engine="local", metric="prompt_tokens")}
        assert told == {10: 12, 60: 12, 3600: 5, 86400: 5}
        totals = {row.resolution: row.value for row in total_rows(metric="prompt_tokens")}
        assert totals == {10: 19, 60: 19, 3600: 5, 86400: 5}
        remove_sources(Source.objects.all(), clock=timezone.now, seconds=60)
        assert not any(left.objects.exists() for left in (Head, Chunk, TotalHead, TotalChunk))


def test_packing_loses_no_bucket_and_no_counters_last_value(no_tables_url: str, django_db_blocker: Any) -> None:
    with used_as_default(no_tables_url, django_db_blocker, **sqlite_settings(no_tables_url)):
        call_command("migrate", "dashboard", "0027", verbosity=0)
        old = MigrationExecutor(connection).loader.project_state(("dashboard", "0027_tenant_quota")).apps
        model = partial(old.get_model, "dashboard")
        source = model("Source").objects.create(name="old", kind="embedded")
        total = model("TotalSeries").objects.create(model_name="m", metric="prompt_tokens")
        series = model("Series").objects.create(
            source=source, engine="e", model_name="m", metric="prompt_tokens", total=total
        )
        run = model("EngineRun").objects.create(source=source, engine="e", boot_id="b", read_at=moment(AT))
        model("CounterState").objects.create(run=run, series=series, value=2**53)
        rng = random.Random(5)
        told = {
            (resolution, AT // resolution * resolution + step * resolution): (rng.randint(-9, 2**40), rng.randint(1, 9))
            for resolution in Resolution.values
            for step in rng.sample(range(1_000), 60)
        }
        with connection.cursor() as cursor:
            for table, pk in (("bucket", series.pk), ("totalbucket", total.pk)):
                cursor.executemany(
                    f"INSERT INTO dashboard_{table} (series_id, resolution, start_at, value, num_samples)"
                    " VALUES (%s, %s, %s, %s, %s)",
                    [(pk, *place, *sums) for place, sums in told.items()],
                )
        call_command("migrate", verbosity=0)
        for found in (rows(), total_rows()):
            assert {(row.resolution, row.start_at): (row.value, row.num_samples) for row in found} == told
        assert counters.unpack(EngineRun.objects.get().counters) == {series.pk: 2**53}


def test_gauges_of_an_older_version_get_totals_of_all_that_can_be_read(
    no_tables_url: str, django_db_blocker: Any
) -> None:
    with used_as_default(no_tables_url, django_db_blocker, **sqlite_settings(no_tables_url)):
        call_command("migrate", verbosity=0)
        sources = [
            Source.objects.create(name=f"e{number}", kind=kind) for number, kind in enumerate(("vllm", "replay"))
        ]
        facts = [(metric, source) for source in sources for metric in ("resident_tokens", "capacity_tokens", "up")]
        create_series((source.pk, source.name, ("m", metric, "gpu", "")) for metric, source in facts)
        ids = list(Series.objects.values_list("pk", flat=True))
        with transaction.atomic():
            add(sums_of((Amount(pk, AT + 7 * step, pk + step) for pk in ids for step in range(900)), _OLDEST))
        expected = total_rows()
        assert {row.metric for row in expected} == {"resident_tokens", "capacity_tokens", "up"}
        call_command("migrate", "dashboard", "0029", verbosity=0)
        Series.objects.update(total=None)
        TotalChunk.objects.all().delete()
        TotalSeries.objects.all().delete()
        torn = Series.objects.get(metric="up", source=sources[0])
        Chunk.objects.filter(series=torn, resolution=60).update(packed=b"torn")
        call_command("migrate", verbosity=0)
        assert total_rows() == [row for row in expected if row.metric != "up" or row.resolution not in STEPS[60]]
        assert Series.objects.exclude(total=None).count() == 3


@pytest.mark.django_db
@pytest.mark.parametrize("table", ["dashboard_head", "dashboard_totalhead"])
def test_on_sqlite_the_table_is_only_its_keys_tree(table: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT sql FROM sqlite_master WHERE tbl_name = %s", [table])
        (statements,) = cursor.fetchall()  # one: no index beside the table
    assert statements[0].rstrip().endswith("WITHOUT ROWID")
