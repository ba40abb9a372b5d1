"""What is stored about replays: which trace through which tiers, how far it is, and what it counted.

Knows nothing about how a trace is read. The series are those of `source`, whose name is the replay's.
"""

from typing import Any

from django.conf import settings
from django.core.validators import MinValueValidator
from django.db import models

from dashboard.models_sources import Source


class Replay(models.Model):
    """One run of a trace through tiers of chosen sizes.

    `tiers`: [{"tier", "amount", "unit", "policy", "write_mode", "store_after_hits", "tenant_quota"}], fastest first, in
    blocks, tokens or bytes. `extent` is known once the trace was read through: {"requests", "seconds", "block_tokens",
    "has_times", "blocks": {tier: number}}. `counts` are the sums of what is in the series: {"prompt_tokens",
    "computed_tokens", "generated_tokens", "requests", "too_large", "hit_tokens": {tier}, "evicted_blocks": {tier}}.
    """

    class Form(models.TextChoices):
        """Those of tiers/traces that have requests; the web process does not load them (a test compares)."""

        AUTO = "auto", "Detect"
        MOONCAKE = "mooncake", "Mooncake's JSON lines"
        LOOKUPS = "lmcache-lookups", "LMCache's lookup log"
        CHAT = "chat", "Chats with text"
        JSONL = "jsonl", "Blocks as JSON lines"
        CSV = "csv", "Blocks as CSV"

    class State(models.TextChoices):
        WAITING = "waiting", "waiting"
        RUNNING = "running", "running"
        DONE = "done", "done"
        CANCELLED = "cancelled", "cancelled"
        FAILED = "failed", "failed"

    source = models.OneToOneField(Source, on_delete=models.CASCADE, related_name="replay")
    file_name = models.CharField("file", max_length=200, help_text="In the folder traces of TIERSCOPE_HOME.")
    file_mark = models.CharField(max_length=64, help_text="Size and time of the file: another one is another trace.")
    form = models.CharField(max_length=16, choices=Form, default=Form.AUTO)
    tiers = models.JSONField()
    bytes_a_token = models.PositiveIntegerField("bytes a token", validators=[MinValueValidator(1)])
    keeps_times = models.BooleanField("at the times that the trace tells", default=False)
    wished_start_at = models.BigIntegerField(null=True, help_text="Unix seconds; empty: so that the trace ends now.")
    starts_at = models.BigIntegerField(null=True, help_text="Where the trace's first request lies, once that is known.")
    read_share = models.FloatField(default=0, help_text="How much of the trace was read through, 0 to 1.")
    extent = models.JSONField(default=dict)
    state = models.CharField(max_length=16, choices=State, default=State.WAITING)
    error = models.TextField(blank=True, help_text="Why it failed, in one sentence.")
    problems = models.JSONField(default=list, help_text="The first lines of the trace that could not be read.")
    num_problems = models.PositiveIntegerField(default=0)
    num_done = models.PositiveBigIntegerField(default=0, help_text="Requests that are in the series.")
    read_until = models.BigIntegerField(default=0, help_text="Unix seconds: readings of the tiers before are in, too.")
    counts = models.JSONField(default=dict)
    worker = models.CharField(max_length=64, blank=True, help_text="Who has it in memory.")
    kept_until = models.DateTimeField(help_text="Until then only that worker goes on with it.")
    claimed_until = models.DateTimeField(help_text="Until then somebody is on it.")
    author = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return self.name

    @property
    def name(self) -> str:
        """Also that of its engine on all pages."""
        return self.source.name

    @property
    def num_requests(self) -> int | None:
        """None until the trace was read through."""
        found: int | None = self.extent.get("requests")
        return found

    @property
    def ends_at(self) -> int | None:
        """Unix seconds, just after its last request; None until that is known."""
        if self.starts_at is None or not self.extent:
            return None
        return self.starts_at + int(self.extent["seconds"]) + 1

    @property
    def share(self) -> float:
        """How much of it is in the series, 0 to 1."""
        return self.num_done / self.num_requests if self.num_requests else float(self.state == self.State.DONE)

    @property
    def blocks(self) -> dict[str, int]:
        """Each tier's size; empty until it is known how many tokens a block holds."""
        found: dict[str, int] = self.extent.get("blocks", {})
        return found

    @property
    def hit_tokens(self) -> dict[str, int]:
        found: dict[str, Any] = self.counts.get("hit_tokens", {})
        return found
