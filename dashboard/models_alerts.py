"""What is stored of alerts: rules with their thresholds, each time one came and went, who is told, and what is still
to be told.
"""

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from dashboard.models_sources import Access


class AlertRule(models.Model):
    """One condition, and how long it has to hold. Rows are made by us; an admin changes them."""

    class Kind(models.TextChoices):
        HIT_RATE_FELL = "hit_rate_fell", "Hit rate fell against the week before"
        SLOW_TIER = "slow_tier", "A slow tier serves most hits"
        THRASHING = "thrashing", "A tier is full and thrashing"
        REMOTE_DOWN = "remote_down", "The remote tier is down"
        SOURCE_STALE = "source_stale", "A source is stale"

    kind = models.CharField(max_length=16, choices=Kind, unique=True, editable=False)
    is_enabled = models.BooleanField("watch for it", default=True)
    threshold = models.FloatField(
        null=True, blank=True, validators=[MinValueValidator(0.0), MaxValueValidator(1.0)], help_text="0 to 1."
    )
    for_minutes = models.PositiveIntegerField(
        "has to hold for (minutes)",
        validators=[MaxValueValidator(24 * 60)],
        help_text="Until then it is pending, and nobody is told.",
    )

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return self.get_kind_display()


class Alert(models.Model):
    """One time that a rule's condition held for one set of labels. A pending one that ends leaves no row."""

    class State(models.TextChoices):
        PENDING = "pending", "Pending"
        FIRING = "firing", "Firing"
        RESOLVED = "resolved", "Resolved"

    rule = models.ForeignKey(AlertRule, on_delete=models.CASCADE, related_name="alerts")
    labels = models.JSONField(help_text="What tells it apart: engine, model_name, cache_tier, source.")
    fingerprint = models.CharField(max_length=16)
    state = models.CharField(max_length=8, choices=State, default=State.PENDING)
    value = models.FloatField(null=True)
    summary = models.TextField()
    pending_at = models.DateTimeField()
    firing_at = models.DateTimeField(null=True)
    resolved_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-pending_at", "-id"]
        indexes = [models.Index(fields=["state", "resolved_at"])]
        constraints = [
            models.UniqueConstraint(
                fields=["rule", "fingerprint"], condition=~models.Q(state="resolved"), name="one_active_alert"
            )
        ]

    def __str__(self) -> str:
        return self.summary


class Webhook(Access):
    """An address that is told of alerts, in Alertmanager's words."""

    name = models.CharField(
        max_length=64,
        unique=True,
        error_messages={"unique": "A webhook of this name already exists; choose another name."},
    )
    url = models.CharField("address", max_length=500, help_text="Like http://pager:9000/alerts.")
    is_enabled = models.BooleanField("tell it", default=True)
    sends_resolved = models.BooleanField("also when an alert is over", default=True)
    last_ok_at = models.DateTimeField(null=True, editable=False)
    last_error = models.TextField(blank=True, editable=False)

    class Meta(Access.Meta):
        abstract = False
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class AlertNotice(models.Model):
    """What one webhook is still to be told; deleted once it was. The oldest of a webhook goes first."""

    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="notices")
    payload = models.JSONField()
    created_at = models.DateTimeField()
    due_at = models.DateTimeField(help_text="The next try; while one runs, when its claim ends.")
    num_tries = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.webhook} {self.created_at:%Y-%m-%d %H:%M}"
