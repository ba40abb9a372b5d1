"""What is stored: sources, series in time buckets, tier settings with their history, requests, keys, retention.

Knows nothing about where a number came from (dashboard/sources) or how it is drawn (dashboard/charts). Everything
counted is an integer, so that sums are exact.
"""

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from dashboard import tenants
from dashboard.models_alerts import Alert, AlertNotice, AlertRule, Webhook
from dashboard.models_buckets import Chunk, Head, Resolution, TotalChunk, TotalHead
from dashboard.models_replays import Replay
from dashboard.models_secrets import ApiKey, ReadToken, validate_tenant
from dashboard.models_sources import Access, Backfill, CacheTier, Discovery, EngineKind, Mapping, MappingRow, Source
from dashboard.models_totals import TotalSeries
from dashboard.models_whatif import PolicySearch, Prediction, Prices
from dashboard.tier_modes import MAX_STORE_AFTER_HITS, MIN_TENANT_QUOTA

__all__ = [
    "Access",
    "Alert",
    "AlertNotice",
    "AlertRule",
    "ApiKey",
    "Backfill",
    "CacheTier",
    "Chunk",
    "Discovery",
    "EngineKind",
    "EngineRun",
    "Head",
    "Mapping",
    "MappingRow",
    "PolicySearch",
    "Prediction",
    "Prices",
    "ReadToken",
    "Replay",
    "RequestLog",
    "Resolution",
    "Retention",
    "Series",
    "Source",
    "TierChange",
    "TierSetting",
    "TotalChunk",
    "TotalHead",
    "TotalSeries",
    "Webhook",
    "validate_tenant",
]


# The tiers that our engines have; "unattributed" is what others do not tell.
OWN_TIERS = [choice for choice in CacheTier.choices if choice[0] != CacheTier.UNATTRIBUTED]


class Series(models.Model):
    """One canonical counter or gauge of one model on one engine."""

    class Metric(models.TextChoices):
        SCRAPES = "scrapes"  # successful observations: a bucket without them is "not observed", not 0
        PROMPT_TOKENS = "prompt_tokens"
        COMPUTED_TOKENS = "computed_tokens"
        HIT_TOKENS = "hit_tokens"  # by cache_tier
        GENERATED_TOKENS = "generated_tokens"
        REQUESTS = "requests"  # detail = finish_reason
        PREEMPTIONS = "preemptions"
        RESIDENT_TOKENS = "resident_tokens"  # gauge, by cache_tier
        CAPACITY_TOKENS = "capacity_tokens"  # gauge, by cache_tier
        USED_BYTES = "used_bytes"  # gauge, by cache_tier
        CAPACITY_BYTES = "capacity_bytes"  # gauge, by cache_tier
        EVICTED_BLOCKS = "evicted_blocks"  # by cache_tier, detail = reason
        LOADED_BYTES = "loaded_bytes"  # by cache_tier
        STORED_BYTES = "stored_bytes"  # by cache_tier
        LOADED_BLOCKS = "loaded_blocks"  # by cache_tier
        STORED_BLOCKS = "stored_blocks"  # by cache_tier
        LOAD_TIMES = "load_times"  # by cache_tier, detail = le; loads of a block that fell into this bucket
        LOAD_MICROSECONDS = "load_microseconds"  # by cache_tier
        STORE_MICROSECONDS = "store_microseconds"  # by cache_tier
        TIER_ERRORS = "tier_errors"  # by cache_tier, detail = load or store
        SKIPPED_TOKENS = "load_skipped_tokens"  # by cache_tier: computed although the tier had them
        ENTERED_TOKENS = "entered_tokens"  # by cache_tier, detail = where from
        LEFT_TOKENS = "left_tokens"  # by cache_tier, detail = where to
        MISSED_TOKENS = "missed_tokens"  # by cache_tier: computed again soon after the tier had dropped them
        UP = "up"  # gauge, by cache_tier: 1 while it can be read and written, 0 while its server is given up
        GIVEN_UP = "given_up"  # by cache_tier: times that its server was given up
        TENANT_PROMPT_TOKENS = "tenant_prompt_tokens"  # detail = tenant
        TENANT_COMPUTED_TOKENS = "tenant_computed_tokens"  # detail = tenant
        TENANT_HIT_TOKENS = "tenant_hit_tokens"  # by cache_tier, detail = tenant
        PREFILL_TOKENS = "prefill_tokens"  # the computed tokens that were timed
        PREFILL_MICROSECONDS = "prefill_microseconds"
        TTFT = (
            "ttft"  # by cache_tier ("" = none read), detail = le; requests that fell into this bucket, not cumulative
        )
        TTFT_MICROSECONDS = "ttft_microseconds"  # by cache_tier, as TTFT
        # detail = the capacity, in tokens of one LRU stack, that would have served them; "+Inf": none would have
        REUSE_TOKENS = "reuse_tokens"
        TENANT_REUSE_TOKENS = "tenant_reuse_tokens"  # the same of a tenant, at fewer capacities; detail = "4096 acme"
        REUSE_SAMPLE_PPM = "reuse_sample_ppm"  # gauge: which share of the blocks is looked at; 1,000,000 is all
        REUSE_GAPS = "reuse_gaps"  # by cache_tier, detail = le; uses of a block by the seconds since its last one
        IDLE_BLOCKS = "idle_blocks"  # by cache_tier: evicted ones of which it is told how long they were not used
        IDLE_MICROSECONDS = "idle_microseconds"  # by cache_tier, of these

    GAUGES = frozenset(
        (
            *(Metric.RESIDENT_TOKENS, Metric.CAPACITY_TOKENS, Metric.USED_BYTES, Metric.CAPACITY_BYTES, Metric.UP),
            Metric.REUSE_SAMPLE_PPM,
        )
    )

    source = models.ForeignKey(Source, on_delete=models.CASCADE, related_name="series")
    total = models.ForeignKey(
        TotalSeries, null=True, editable=False, on_delete=models.PROTECT, related_name="series", db_index=False
    )
    engine = models.CharField(max_length=130, help_text="A watched engine is named source/label.")
    model_name = models.CharField(max_length=200, blank=True)
    metric = models.CharField(max_length=24, choices=Metric)
    cache_tier = models.CharField(max_length=16, blank=True)
    detail = models.CharField(max_length=48, blank=True)

    class Meta:
        verbose_name_plural = "series"
        constraints = [
            models.UniqueConstraint(
                fields=["source", "engine", "model_name", "metric", "cache_tier", "detail"], name="one_series"
            )
        ]

    def __str__(self) -> str:
        return " ".join(filter(None, [self.engine, self.model_name, self.metric, self.cache_tier, self.detail]))


class EngineRun(models.Model):
    """One run of one engine as a source showed it: an older reading of the same run is never recorded again."""

    source = models.ForeignKey(Source, on_delete=models.CASCADE, related_name="runs")
    engine = models.CharField(max_length=130)
    boot_id = models.CharField(max_length=64, blank=True, help_text="Empty where the engine does not tell its runs.")
    read_at = models.DateTimeField(help_text="When the newest recorded reading was taken.")
    counters = models.BinaryField(
        default=b"",
        editable=False,
        help_text="The last value of each counter: what its next increase is measured from.",
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["source", "engine", "boot_id"], name="one_run")]

    def __str__(self) -> str:
        return f"{self.engine} {self.boot_id}".strip()


class Retention(models.Model):
    """How long each resolution and the request log are kept. One row."""

    ten_seconds_hours = models.PositiveIntegerField(
        "10-second buckets are kept for (hours)",
        default=48,
        validators=[MinValueValidator(2)],
        help_text="So far back charts may have a point every 10 seconds.",
    )
    minutes_days = models.PositiveIntegerField(
        "1-minute buckets are kept for (days)",
        default=14,
        validators=[MinValueValidator(1)],
        help_text="So far back charts may have a point a minute.",
    )
    hours_days = models.PositiveIntegerField(
        "1-hour buckets are kept for (days)",
        default=400,
        validators=[MinValueValidator(31)],
        help_text="So far back charts may have a point an hour.",
    )
    days_years = models.PositiveIntegerField(
        "1-day buckets are kept for (years)",
        default=10,
        validators=[MinValueValidator(1)],
        help_text="So far back charts show anything: a point a day.",
    )
    requests_days = models.PositiveIntegerField(
        "requests are kept for (days)",
        default=7,
        validators=[MinValueValidator(1)],
        help_text="The list of single requests; the sums of the charts do not need it.",
    )
    requests_rows = models.PositiveIntegerField(
        "at most so many requests are kept",
        default=200_000,
        validators=[MinValueValidator(1000)],
        help_text="Where there are more, the oldest go first.",
    )

    class Meta:
        verbose_name_plural = "retention"

    def __str__(self) -> str:
        return "Retention"


class TierSetting(models.Model):
    """What an admin asked of one tier of one embedded engine, and what that engine made of it."""

    class Policy(models.TextChoices):
        LRU = "lru", "LRU"
        S3FIFO = "s3fifo", "S3-FIFO"
        ARC = "arc", "ARC"

    class WriteMode(models.TextChoices):
        WRITE_BACK = "write_back", "Write back: store when evicted"
        WRITE_THROUGH = "write_through", "Write through: store when filled"
        WRITE_SELECTIVE = "write_selective", "Write selective: store once used again"

    class Load(models.TextChoices):
        ALWAYS = "always", "Always"
        WHEN_CHEAPER = "when_cheaper", "When cheaper than computing"

    engine = models.CharField(max_length=64)
    cache_tier = models.CharField(max_length=16, choices=OWN_TIERS)
    desired_bytes = models.BigIntegerField(validators=[MinValueValidator(0)])
    policy = models.CharField(
        max_length=16,
        choices=Policy,
        default=Policy.LRU,
        help_text="Which block leaves first. LRU suits most; S3-FIFO and ARC keep what is used again where much is "
        "used only once.",
    )
    write_mode = models.CharField(max_length=16, choices=WriteMode, default=WriteMode.WRITE_BACK)
    store_after_hits = models.PositiveSmallIntegerField(
        "store at hit number",
        default=2,
        validators=[MinValueValidator(1), MaxValueValidator(MAX_STORE_AFTER_HITS)],
        help_text="With write selective only: 2 stores a block here when it is hit for the second time.",
    )
    load = models.CharField(
        "load from here",
        max_length=16,
        choices=Load,
        default=Load.ALWAYS,
        help_text="“When cheaper” computes blocks that lie here where that takes less time, by what both took lately.",
    )
    tenant_quota = models.FloatField(
        "largest share of one tenant",
        default=1.0,
        validators=[MinValueValidator(MIN_TENANT_QUOTA), MaxValueValidator(1)],
        help_text="Of the tier's blocks, 0.01 to 1: a tenant that has as much makes room for itself. 1 limits nobody. "
        "Requests whose key has no tenant are one tenant together.",
    )
    applied_bytes = models.BigIntegerField(null=True, editable=False)
    applied_at = models.DateTimeField(null=True, editable=False)
    reason = models.TextField(blank=True, editable=False, help_text="Why applied differs from desired.")
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["engine", "id"]
        constraints = [models.UniqueConstraint(fields=["engine", "cache_tier"], name="one_setting_per_tier")]

    def __str__(self) -> str:
        return f"{self.engine} {self.cache_tier}"


class TierChange(models.Model):
    """The history of sizes, modes and clears: author and time, and the marks on the charts."""

    _ACTIONS = [(v, v.replace("_", " ")) for v in ("resize", "policy", "write_mode", "load", "tenant_quota", "clear")]

    engine = models.CharField(max_length=64)
    cache_tier = models.CharField(max_length=16, choices=OWN_TIERS)
    action = models.CharField(max_length=16, choices=[*_ACTIONS, ("store_after_hits", "store")])
    old_value = models.CharField(max_length=64, blank=True)
    new_value = models.CharField(max_length=64, blank=True)
    author = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    at = models.DateTimeField()

    class Meta:
        ordering = ["-at"]
        indexes = [models.Index(fields=["at"])]

    def __str__(self) -> str:
        return f"{self.engine} {self.cache_tier} {self.action} {self.old_value} → {self.new_value}"


class RequestLog(models.Model):
    """One answered request, with the tier every prompt token came from. Bounded by Retention."""

    request_id = models.CharField(max_length=64, unique=True)
    engine = models.CharField(max_length=64)
    model_name = models.CharField(max_length=200)
    api_key = models.ForeignKey("ApiKey", null=True, on_delete=models.SET_NULL)
    tenant = models.CharField(max_length=tenants.MAX_LENGTH, blank=True, help_text="Empty for the common pool.")
    received_at = models.DateTimeField()
    finished_at = models.DateTimeField()
    prompt_tokens = models.PositiveIntegerField()
    hit_gpu_tokens = models.PositiveIntegerField(default=0)
    hit_cpu_tokens = models.PositiveIntegerField(default=0)
    hit_disk_tokens = models.PositiveIntegerField(default=0)
    hit_remote_tokens = models.PositiveIntegerField(default=0)
    computed_tokens = models.PositiveIntegerField()
    generated_tokens = models.PositiveIntegerField()
    slowest_tier = models.CharField(max_length=16, blank=True)
    ttft_seconds = models.FloatField(null=True)
    finish_reason = models.CharField(max_length=16)
    error = models.TextField(blank=True)

    class Meta:
        ordering = ["-finished_at"]
        indexes = [models.Index(fields=["finished_at"]), models.Index(fields=["tenant", "finished_at"])]

    def __str__(self) -> str:
        return self.request_id
