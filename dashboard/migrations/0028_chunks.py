"""Buckets are packed, 360 in a row: a row for each took a hundred bytes on PostgreSQL, forty times what they say.

New amounts come into a head of ten-second rows; on SQLite it is nothing but its key's tree. What there is goes into chunks,
series by series. The last values of a run's counters go into the run's row. There is no way back but a backup.
"""

from typing import Any

import django.db.models.deletion
from django.db import migrations, models

from dashboard import counters
from dashboard.chunks import Buckets, pack, place_of

_HEAD = """
CREATE TABLE {table} (
    series_id bigint NOT NULL,
    start_at bigint NOT NULL,
    value bigint NOT NULL,
    num_samples integer{unsigned} NOT NULL CHECK (num_samples >= 0),
    PRIMARY KEY (series_id, start_at)
) {storage}
"""
_CHUNK = """
CREATE TABLE {table} (
    series_id bigint NOT NULL,
    resolution integer{unsigned} NOT NULL CHECK (resolution >= 0),
    start_at bigint NOT NULL,
    packed {bytes} NOT NULL,
    PRIMARY KEY (series_id, resolution, start_at)
) {storage}
"""
# A chunk that still fills is written anew where it lies, if its page has room.
_SQLITE = {"unsigned": " unsigned", "bytes": "BLOB"}
_POSTGRESQL = {"unsigned": "", "bytes": "bytea"}
_TABLES = (("dashboard_bucket", "dashboard_chunk"), ("dashboard_totalbucket", "dashboard_totalchunk"))
_ROWS_TOGETHER = 50_000


def make_tables(apps: Any, schema_editor: Any) -> None:
    is_sqlite = schema_editor.connection.vendor == "sqlite"
    types = _SQLITE if is_sqlite else _POSTGRESQL
    for table in ("dashboard_head", "dashboard_totalhead"):
        schema_editor.execute(_HEAD.format(table=table, storage="WITHOUT ROWID" if is_sqlite else "", **types))
    for table in ("dashboard_chunk", "dashboard_totalchunk"):
        schema_editor.execute(
            _CHUNK.format(table=table, storage="" if is_sqlite else "WITH (fillfactor = 80)", **types)
        )


def pack_buckets(apps: Any, schema_editor: Any) -> None:
    for old, new in _TABLES:
        with schema_editor.connection.cursor() as cursor:
            cursor.execute(f"SELECT DISTINCT series_id FROM {old} ORDER BY 1")  # noqa: S608 (constants of this file)
            for (series_id,) in cursor.fetchall():
                _pack_series(cursor, old, new, series_id)


def _pack_series(cursor: Any, old: str, new: str, series_id: int) -> None:
    cursor.execute(f"SELECT resolution, start_at, value, num_samples FROM {old} WHERE series_id = %s", [series_id])  # noqa: S608
    chunks: dict[tuple[int, int], Buckets] = {}
    while rows := cursor.fetchmany(_ROWS_TOGETHER):
        for resolution, start_at, value, num_samples in rows:
            chunk_start, index = place_of(start_at, resolution)
            if (chunk := chunks.get((resolution, chunk_start))) is None:
                chunk = chunks[resolution, chunk_start] = Buckets.empty()
            chunk.values[index], chunk.num_samples[index] = value, num_samples
    cursor.executemany(
        f"INSERT INTO {new} (series_id, resolution, start_at, packed) VALUES (%s, %s, %s, %s)",  # noqa: S608
        [(series_id, *place, pack(chunk)) for place, chunk in chunks.items() if not chunk.is_empty],
    )


def pack_counters(apps: Any, schema_editor: Any) -> None:
    states = apps.get_model("dashboard", "CounterState").objects
    for run in apps.get_model("dashboard", "EngineRun").objects.all():
        run.counters = counters.pack(dict(states.filter(run=run).values_list("series_id", "value")))
        run.save(update_fields=["counters"])


def _series(to: str, related_name: str) -> tuple[str, Any]:
    return "series", models.ForeignKey(
        db_constraint=False,
        db_index=False,
        on_delete=django.db.models.deletion.CASCADE,
        related_name=related_name,
        to=to,
    )


def _key(*columns: str) -> tuple[str, Any]:
    return "pk", models.CompositePrimaryKey(*columns, blank=True, editable=False, primary_key=True, serialize=False)


def _head(name: str, to: str) -> Any:
    fields = [
        _key("series", "start_at"),
        ("start_at", models.BigIntegerField(help_text="Unix seconds, a multiple of ten.")),
        ("value", models.BigIntegerField()),
        ("num_samples", models.PositiveIntegerField()),
        _series(to, "head"),
    ]
    return migrations.CreateModel(name=name, fields=fields, options={"abstract": False})


def _chunk(name: str, to: str) -> Any:
    choices = [(10, "10 s"), (60, "1 min"), (3600, "1 h"), (86400, "1 d")]
    fields = [
        _key("series", "resolution", "start_at"),
        ("resolution", models.PositiveIntegerField(choices=choices)),
        (
            "start_at",
            models.BigIntegerField(help_text="Unix seconds, a multiple of 360 times the resolution."),
        ),
        ("packed", models.BinaryField()),
        _series(to, "chunks"),
    ]
    return migrations.CreateModel(name=name, fields=fields, options={"abstract": False})


class Migration(migrations.Migration):
    dependencies = [
        ("dashboard", "0027_tenant_quota"),
    ]

    operations = [
        migrations.AddField(
            model_name="enginerun",
            name="counters",
            field=models.BinaryField(
                default=b"",
                editable=False,
                help_text="The last value of each counter: what its next increase is measured from.",
            ),
        ),
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(make_tables)],
            state_operations=[
                _head("Head", "dashboard.series"),
                _chunk("Chunk", "dashboard.series"),
                _head("TotalHead", "dashboard.totalseries"),
                _chunk("TotalChunk", "dashboard.totalseries"),
            ],
        ),
        migrations.RunPython(pack_counters),
        migrations.RunPython(pack_buckets),
        migrations.DeleteModel(name="CounterState"),
        migrations.DeleteModel(name="Bucket"),
        migrations.DeleteModel(name="TotalBucket"),
    ]
