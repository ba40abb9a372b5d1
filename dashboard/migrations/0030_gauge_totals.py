"""Gauges get totals, too: what all engines' come to in each step that a chart has, of what is packed (gauge_steps.py).

Total by total, so that memory holds the chunks of one.
"""

import logging
from collections import defaultdict
from typing import Any

from django.db import migrations

from dashboard.chunks import Buckets, ChunkError, pack, unpack
from dashboard.gauge_steps import changes, everything

_log = logging.getLogger(__name__)

_GAUGES = ("resident_tokens", "capacity_tokens", "used_bytes", "capacity_bytes", "up", "reuse_sample_ppm")
_NAMES = ("metric", "model_name", "cache_tier", "detail")
_BATCH = 500


def fill(apps: Any, schema_editor: Any) -> None:
    gauges = apps.get_model("dashboard", "Series").objects.filter(metric__in=_GAUGES, total=None)
    gauges = gauges.exclude(source__kind="replay")
    for names in list(gauges.order_by().values_list(*_NAMES).distinct()):
        columns = dict(zip(_NAMES, names, strict=True))
        total = apps.get_model("dashboard", "TotalSeries").objects.create(**columns)
        ids = list(gauges.filter(**columns).values_list("pk", flat=True))
        chunks = _chunks_of_total(apps.get_model("dashboard", "Chunk").objects, ids)
        rows = [
            apps.get_model("dashboard", "TotalChunk")(
                series=total, resolution=step, start_at=start_at, packed=pack(chunk)
            )
            for (step, start_at), chunk in sorted(chunks.items())
        ]
        apps.get_model("dashboard", "TotalChunk").objects.bulk_create(rows, batch_size=_BATCH)
        gauges.filter(**columns).update(total=total)


def _chunks_of_total(stored: Any, ids: list[int]) -> dict[tuple[int, int], Buckets]:
    found: dict[tuple[int, int], Buckets] = defaultdict(Buckets.empty)
    for series_id in ids:
        of_series = stored.filter(series=series_id)
        for resolution, start_at, packed in of_series.values_list("resolution", "start_at", "packed"):
            try:
                chunk = unpack(packed)
            except ChunkError as error:
                _log.error("Chunk %s of series %s at %s is in no total: %s", resolution, series_id, start_at, error)
                continue
            for step, index, value, more in changes(resolution, Buckets.empty(), chunk, everything(chunk)):
                sums = found[step, start_at]
                sums.values[index] += value
                sums.num_samples[index] += more
    return found


class Migration(migrations.Migration):
    dependencies = [
        ("dashboard", "0029_removals"),
    ]

    operations = [
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
