"""What is stored for the what-if page: prices that an admin typed, and predictions that were acted upon."""

from typing import Any

from django.conf import settings
from django.core.validators import MinValueValidator
from django.db import models


def _price(words: str, help_text: str = "") -> Any:
    return models.DecimalField(
        words,
        max_digits=12,
        decimal_places=6,
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
        help_text=help_text,
    )


class Prices(models.Model):
    """What memory and computing cost, in dollars, as somebody typed it; None where nobody did. One row."""

    gpu_gib_month = _price("GPU memory, $ a GiB and month", "Leave it empty where the GPU is paid by the hour.")
    cpu_gib_month = _price("CPU DRAM, $ a GiB and month")
    disk_gib_month = _price("disk, $ a GiB and month")
    remote_gib_month = _price("remote, $ a GiB and month")
    gpu_hour = _price("GPU, $ an hour", "What an hour of computing prompts costs; a hit saves its share of it.")

    class Meta:
        verbose_name_plural = "prices"

    def __str__(self) -> str:
        return "Prices"


class Prediction(models.Model):
    """Sizes that somebody applied from the what-if page, and what was predicted for them. Never changed.

    `sizes` and `old_sizes`: bytes by tier. `predicted`: {"hit": {tier: share of the prompt tokens}, "ttft_seconds",
    "sample_rate"}. The period that it was made from is [`period_start`, `period_end`), Unix seconds.
    """

    engine = models.CharField(max_length=130)
    model_name = models.CharField(max_length=200, blank=True)
    author = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    at = models.DateTimeField()
    period_start = models.BigIntegerField()
    period_end = models.BigIntegerField()
    old_sizes = models.JSONField()
    sizes = models.JSONField()
    predicted = models.JSONField()

    class Meta:
        ordering = ["-at"]
        indexes = [models.Index(fields=["engine", "at"])]

    def __str__(self) -> str:
        return f"{self.engine} {self.at:%Y-%m-%d %H:%M}"


class PolicySearch(models.Model):
    """Which policies and write modes would serve an engine's traffic best, tried on a trace of it.

    `tiers`: [{"tier", "policy", "write_mode", "store_after_hits", "bytes_a_token"}], fastest first, as they were when
    it was asked for; `sizes`: [{tier: bytes}] to try them at, today's first. `seconds` a token takes, by tier and
    "computed"; {} where nobody tells. `results`: [{"sizes": place, "setup": [[policy, write mode]], "hit": [share]}],
    both in the order of `tiers`. `sample`: {"requests", "rate", "is_all"} of the trace, once it was read.
    """

    class State(models.TextChoices):
        WAITING = "waiting", "waiting"
        RUNNING = "running", "running"
        DONE = "done", "done"
        FAILED = "failed", "failed"

    engine = models.CharField(max_length=130)
    file_name = models.CharField(max_length=200)
    form = models.CharField(max_length=16)
    tiers = models.JSONField()
    sizes = models.JSONField()
    seconds = models.JSONField(default=dict)
    sample = models.JSONField(default=dict)
    results = models.JSONField(default=list)
    state = models.CharField(max_length=16, choices=State, default=State.WAITING)
    error = models.TextField(blank=True)
    claimed_until = models.DateTimeField()
    author = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["engine"])]

    def __str__(self) -> str:
        return f"{self.engine} {self.created_at:%Y-%m-%d %H:%M}"
