"""A bucket's key is its place: series, resolution, start. The old number and its second index go.

Django cannot alter a primary key, so the tables are remade in SQL. On SQLite the new one is WITHOUT ROWID, on PostgreSQL
the key alone changes: there an index that holds the values too would be rewritten with each of them.
"""

from typing import Any

from django.db import migrations, models

_SQLITE = (
    """
    CREATE TABLE new_bucket (
        series_id bigint NOT NULL REFERENCES dashboard_series (id) DEFERRABLE INITIALLY DEFERRED,
        resolution integer unsigned NOT NULL CHECK (resolution >= 0),
        start_at bigint NOT NULL,
        value bigint NOT NULL,
        num_samples integer unsigned NOT NULL CHECK (num_samples >= 0),
        PRIMARY KEY (series_id, resolution, start_at)
    ) WITHOUT ROWID
    """,
    """
    INSERT INTO new_bucket
    SELECT series_id, resolution, start_at, value, num_samples FROM dashboard_bucket ORDER BY 1, 2, 3
    """,
    "DROP TABLE dashboard_bucket",
    "ALTER TABLE new_bucket RENAME TO dashboard_bucket",
)
_POSTGRESQL = (
    "ALTER TABLE dashboard_bucket DROP COLUMN id",
    "ALTER TABLE dashboard_bucket DROP CONSTRAINT one_bucket",
    "ALTER TABLE dashboard_bucket ADD PRIMARY KEY (series_id, resolution, start_at)",
)


def remake(apps: Any, schema_editor: Any) -> None:
    for statement in _SQLITE if schema_editor.connection.vendor == "sqlite" else _POSTGRESQL:
        schema_editor.execute(statement)


class Migration(migrations.Migration):
    dependencies = [
        ("dashboard", "0011_backfills"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(remake)],
            state_operations=[
                migrations.RemoveConstraint(model_name="bucket", name="one_bucket"),
                migrations.RemoveField(model_name="bucket", name="id"),
                migrations.AddField(
                    model_name="bucket",
                    name="pk",
                    field=models.CompositePrimaryKey(
                        "series",
                        "resolution",
                        "start_at",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
            ],
        ),
    ]
