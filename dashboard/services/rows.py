"""Statements about many rows at once, in the form that each database takes fastest. Knows no table.

PostgreSQL gets columns as arrays: 100,000 upserted rows take a second, a third of what single parameters take. SQLite
prepares a statement once and steps through the rows.
"""

from collections.abc import Sequence
from typing import Any

from django.db import connection

_UNNEST = "SELECT * FROM unnest({})"


def execute_integers(sql: str, rows: Sequence[tuple[int, ...]]) -> None:
    """Runs `sql`, whose `{rows}` stands where INSERT takes VALUES or SELECT, for rows of as many integers each."""
    if not rows:
        return
    width = len(rows[0])
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            arrays = ", ".join(["%s::bigint[]"] * width)
            columns = ["{" + ",".join(map(str, column)) + "}" for column in zip(*rows, strict=True)]
            cursor.execute(sql.format(rows=_UNNEST.format(arrays)), columns)
        else:
            cursor.executemany(sql.format(rows=f"VALUES ({', '.join(['%s'] * width)})"), rows)


def execute_values(sql: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Runs `sql`, whose `{rows}` is a list of rows of values, `(…), (…)`: some hundred of them, none of them None."""
    if not rows:
        return
    places = ", ".join([f"({', '.join(['%s'] * len(rows[0]))})"] * len(rows))
    with connection.cursor() as cursor:
        cursor.execute(sql.format(rows=places), [value for row in rows for value in row])
