"""What all engines together counted, one series for each counter of a model, from what there is of each engine.

On SQLite the table is WITHOUT ROWID, as that of the engines' own buckets (0012). On PostgreSQL both tables leave room in
their pages, so that a bucket which still fills is rewritten where it lies.
"""

from typing import Any

import django.db.models.deletion
from django.db import migrations, models

_TABLE = """
CREATE TABLE dashboard_totalbucket (
    series_id bigint NOT NULL REFERENCES dashboard_totalseries (id) DEFERRABLE INITIALLY DEFERRED,
    resolution integer{unsigned} NOT NULL CHECK (resolution >= 0),
    start_at bigint NOT NULL,
    value bigint NOT NULL,
    num_samples integer{unsigned} NOT NULL CHECK (num_samples >= 0),
    PRIMARY KEY (series_id, resolution, start_at)
) {storage}
"""
_SQLITE = (_TABLE.format(unsigned=" unsigned", storage="WITHOUT ROWID"),)
_POSTGRESQL = (
    _TABLE.format(unsigned="", storage="WITH (fillfactor = 70)"),
    "ALTER TABLE dashboard_bucket SET (fillfactor = 70)",
)
_COUNTING = """
metric NOT IN ('resident_tokens', 'capacity_tokens', 'used_bytes', 'capacity_bytes', 'up', 'reuse_sample_ppm')
AND source_id NOT IN (SELECT id FROM dashboard_source WHERE kind = 'replay')
"""
_FILL = (
    f"""
    INSERT INTO dashboard_totalseries (metric, model_name, cache_tier, detail)
    SELECT DISTINCT metric, model_name, cache_tier, detail FROM dashboard_series WHERE {_COUNTING}
    """,  # noqa: S608 (constants of this file)
    f"""
    UPDATE dashboard_series SET total_id = (
        SELECT id FROM dashboard_totalseries AS total
        WHERE total.metric = dashboard_series.metric AND total.model_name = dashboard_series.model_name
        AND total.cache_tier = dashboard_series.cache_tier AND total.detail = dashboard_series.detail
    ) WHERE {_COUNTING}
    """,  # noqa: S608
    """
    INSERT INTO dashboard_totalbucket (series_id, resolution, start_at, value, num_samples)
    SELECT series.total_id, bucket.resolution, bucket.start_at, SUM(bucket.value), SUM(bucket.num_samples)
    FROM dashboard_series AS series JOIN dashboard_bucket AS bucket ON bucket.series_id = series.id
    WHERE series.total_id IS NOT NULL
    GROUP BY series.total_id, bucket.resolution, bucket.start_at
    """,
)


def make_table(apps: Any, schema_editor: Any) -> None:
    for statement in _SQLITE if schema_editor.connection.vendor == "sqlite" else _POSTGRESQL:
        schema_editor.execute(statement)


def fill(apps: Any, schema_editor: Any) -> None:
    for statement in _FILL:
        schema_editor.execute(statement)


class Migration(migrations.Migration):
    dependencies = [
        ("dashboard", "0024_replay_read_until"),
    ]

    operations = [
        migrations.CreateModel(
            name="TotalSeries",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("model_name", models.CharField(blank=True, max_length=200)),
                ("metric", models.CharField(max_length=24)),
                ("cache_tier", models.CharField(blank=True, max_length=16)),
                ("detail", models.CharField(blank=True, max_length=48)),
            ],
            options={
                "verbose_name_plural": "total series",
                "constraints": [
                    models.UniqueConstraint(fields=("metric", "model_name", "cache_tier", "detail"), name="one_total")
                ],
            },
        ),
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(make_table, migrations.RunPython.noop)],
            state_operations=[
                migrations.CreateModel(
                    name="TotalBucket",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "series",
                                "resolution",
                                "start_at",
                                blank=True,
                                editable=False,
                                primary_key=True,
                                serialize=False,
                            ),
                        ),
                        ("resolution", models.PositiveIntegerField()),
                        ("start_at", models.BigIntegerField(help_text="Unix seconds, a multiple of the resolution.")),
                        ("value", models.BigIntegerField(default=0)),
                        ("num_samples", models.PositiveIntegerField(default=0)),
                        (
                            "series",
                            models.ForeignKey(
                                db_index=False,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="buckets",
                                to="dashboard.totalseries",
                            ),
                        ),
                    ],
                ),
            ],
        ),
        migrations.AddField(
            model_name="series",
            name="total",
            field=models.ForeignKey(
                db_index=False,
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="series",
                to="dashboard.totalseries",
            ),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
