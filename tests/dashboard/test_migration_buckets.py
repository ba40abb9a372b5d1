"""A store from before buckets were kept by their place is taken over with all it holds."""

from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.db.migrations.executor import MigrationExecutor

from dashboard.models import Bucket, Source
from dashboard.services.buckets import Amount, add_amounts
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
        series = old.get_model("dashboard", "Series").objects.create(
            source=source, engine="local", model_name="m", metric="prompt_tokens"
        )
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO dashboard_bucket (series_id, resolution, start_at, value, num_samples)"
                f" VALUES ({series.pk}, 10, {AT}, 7, 1), ({series.pk}, 60, {AT - AT % 60}, 7, 1)"
            )
        call_command("migrate", verbosity=0)
        with transaction.atomic():
            add_amounts([Amount(series.pk, AT, 5)])
        told = dict(Bucket.objects.filter(series=series.pk).values_list("resolution", "value"))
        assert told == {10: 12, 60: 12, 3600: 5, 86400: 5}
        Source.objects.get(pk=source.pk).delete()
        assert not Bucket.objects.exists()


@pytest.mark.django_db
def test_on_sqlite_the_table_is_only_its_keys_tree() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT sql FROM sqlite_master WHERE tbl_name = 'dashboard_bucket'")
        (statements,) = cursor.fetchall()  # one: no index beside the table
    assert statements[0].rstrip().endswith("WITHOUT ROWID")
