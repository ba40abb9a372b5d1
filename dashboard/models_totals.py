"""What all engines together counted, and held: one series for each counter and gauge of a model, beside the engines'.

Whoever asks for no engine in particular reads these: 500 engines are then as quick to read as one. Replays have none,
their traffic is not of this time. What a gauge's total is: dashboard/gauge_steps.py.
"""

from django.db import models


class TotalSeries(models.Model):
    """Σ of one counter, or of one gauge's means, of one model over all engines; columns as those of Series."""

    model_name = models.CharField(max_length=200, blank=True)
    metric = models.CharField(max_length=24)
    cache_tier = models.CharField(max_length=16, blank=True)
    detail = models.CharField(max_length=48, blank=True)

    class Meta:
        verbose_name_plural = "total series"
        constraints = [
            models.UniqueConstraint(fields=["metric", "model_name", "cache_tier", "detail"], name="one_total")
        ]

    def __str__(self) -> str:
        return " ".join(filter(None, [self.model_name, self.metric, self.cache_tier, self.detail]))
