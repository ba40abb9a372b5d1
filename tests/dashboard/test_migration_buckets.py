"""A store from before buckets were kept by their place is taken over with all it holds."""

from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.db.migrations.executor import MigrationExecutor

from dashboard.models import Bucket, Source, TotalBucket
from dashboard.services.buckets import Amount, add_amounts
from dashboard.services.totals import remove_source
from tests.dashboard.stores import sqlite_settings, used_as_default

AT = 1_800_000_000


@pytest.fixture(params=["sqlite", "postgresql"])
def no_tables_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'old.sqlite3'}"
    server: str = request.getfixturevalue("postgres_url")
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute("CREATE DATABASE old_buckets")
    return server.replace("/postgres?", "/old_buckets?")


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
        told = dict(Bucket.objects.filter(series=1).values_list("resolution", "value"))
        assert told == {10: 12, 60: 12, 3600: 5, 86400: 5}
        totals = dict(TotalBucket.objects.values_list("resolution", "value"))
        assert totals == {10: 19, 60: 19, 3600: 5, 86400: 5}
        remove_source(Source.objects.get())
        assert not Bucket.objects.exists()
        assert not TotalBucket.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize("table", ["dashboard_bucket", "dashboard_totalbucket"])
def test_on_sqlite_the_table_is_only_its_keys_tree(table: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT sql FROM sqlite_master WHERE tbl_name = %s", [table])
        (statements,) = cursor.fetchall()  # one: no index beside the table
    assert statements[0].rstrip().endswith("WITHOUT ROWID")
