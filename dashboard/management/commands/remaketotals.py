"""`manage.py remaketotals`: what all engines' gauges come to, anew from their own series.

For after a row was deleted that could not be read (docs/operating.md): totals still have, or lack, what it said.
"""

from typing import Any

from django.core.management.base import BaseCommand

from dashboard.chunks import ChunkError
from dashboard.models import Series, TotalSeries
from dashboard.services.chunks import remake


class Command(BaseCommand):
    help = "Makes the totals of gauges anew: after a row was deleted that could not be read."

    def handle(self, *args: Any, **options: Any) -> None:
        totals = TotalSeries.objects.filter(metric__in=Series.GAUGES).order_by("pk")
        num_made = 0
        for total in totals:
            try:
                remake(total.pk)
                num_made += 1
            except ChunkError as error:
                self.stderr.write(f"{total}: {error}")
        self.stdout.write(f"{num_made} of {totals.count()} totals of gauges were made anew.")
