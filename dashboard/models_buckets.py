"""Where amounts are stored: the newest as rows of ten seconds (the head), older ones packed, 360 buckets a chunk.

What a series did in a stretch of time is what its chunks there say and what its head says, together, at any moment:
services/chunks.py moves amounts from the head into the chunks of every resolution in one transaction, and whoever reads
takes both in one statement. A counter that did not move has no bucket: `scrapes` tells "nothing happened" from "nobody
looked".

No foreign key in the database: PostgreSQL would look up the series of each row that comes, a third of what it takes. A
series goes only with its source, under the source's lock, and services/integrity.py looks for what is left behind.
"""

from typing import Any

from django.db import models


class Resolution(models.IntegerChoices):
    TEN_SECONDS = 10, "10 s"
    MINUTE = 60, "1 min"
    HOUR = 3600, "1 h"
    DAY = 86400, "1 d"


class _Head(models.Model):
    """A series' increase (counter) or sum of readings (gauge; mean = value / num_samples) in ten seconds.

    On SQLite the table is nothing but its key's tree (migration 0028).
    """

    pk = models.CompositePrimaryKey("series", "start_at")
    start_at = models.BigIntegerField(help_text="Unix seconds, a multiple of ten.")
    value = models.BigIntegerField()
    num_samples = models.PositiveIntegerField()

    series_id: int

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.series_id} @{self.start_at}"


class _Chunk(models.Model):
    """`packed`: dashboard/chunks.py. Changed only by who holds the series' row (services/chunks.py)."""

    pk = models.CompositePrimaryKey("series", "resolution", "start_at")
    resolution = models.PositiveIntegerField(choices=Resolution)
    start_at = models.BigIntegerField(help_text="Unix seconds, a multiple of 360 times the resolution.")
    packed = models.BinaryField()

    series_id: int

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.series_id} {self.resolution}s @{self.start_at}"


def _of(series: str, related_name: str) -> Any:
    return models.ForeignKey(
        series, on_delete=models.CASCADE, related_name=related_name, db_index=False, db_constraint=False
    )


class Head(_Head):
    series = _of("Series", "head")


class Chunk(_Chunk):
    series = _of("Series", "chunks")


class TotalHead(_Head):
    series = _of("TotalSeries", "head")


class TotalChunk(_Chunk):
    """A gauge's has the steps of dashboard/gauge_steps.py instead of resolutions, as many as fit into what a chunk of
    the resolution covers that they are made of; the number of readings is that of engines that had any.
    """

    series = _of("TotalSeries", "chunks")
