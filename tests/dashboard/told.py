"""What engines tell, made by hand: exposition texts in our own names, and snapshots as an engine publishes them."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from dashboard import valkey
from dashboard.models import Series
from tests.stored import rows

TIERS = ("gpu", "cpu", "disk", "remote")
BOUNDS = ("0.1", "1.0", "+Inf")


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, tz=UTC)


def telling(text: str) -> Callable[[object], str]:
    """A fetch that finds `text` at every address."""
    return lambda url: text


class Engine:
    """An engine that counts truthfully: `serve` is one request, `restart` a new process that starts from 0."""

    def __init__(self, name: str = "local", model_name: str = "smol") -> None:
        self.name, self.model_name, self.num_boots = name, model_name, 0
        self.truth: Counter[tuple[str, str]] = Counter()  # over all boots: (metric, tier) → tokens
        self.restart()

    def restart(self) -> None:
        self.num_boots += 1
        self.counts: Counter[tuple[str, str]] = Counter()
        self.ttft: Counter[str] = Counter()

    def serve(self, hits: Mapping[str, int], computed: int, bound: str = "1.0") -> None:
        told = {("prompt_tokens", ""): sum(hits.values()) + computed, ("computed_tokens", ""): computed}
        told |= {("hit_tokens", tier): tokens for tier, tokens in hits.items()}
        self.counts.update(told)
        self.truth.update(told)
        self.ttft[bound] += 1

    def text(self, prefix: str = "tierscope_") -> str:
        labels = f'engine="{self.name}",model_name="{self.model_name}"'
        lines = [
            f"{prefix}prompt_tokens_total{{{labels}}} {self.counts['prompt_tokens', '']}",
            f"{prefix}computed_prompt_tokens_total{{{labels}}} {self.counts['computed_tokens', '']}",
        ]
        for tier in TIERS:
            of_tier = f'{labels},cache_tier="{tier}"'
            lines.append(f"{prefix}cached_prompt_tokens_total{{{of_tier}}} {self.counts['hit_tokens', tier]}")
            lines.append(f"{prefix}tier_capacity_tokens{{{of_tier}}} 1000")
            lines.append(f"{prefix}tier_resident_tokens{{{of_tier}}} 600")
        below = 0
        for bound in BOUNDS:
            below += self.ttft[bound]
            of_bucket = f'{labels},cache_tier="none",le="{bound}"'
            lines.append(f"{prefix}time_to_first_token_seconds_bucket{{{of_bucket}}} {below}")
        return "\n".join(lines) + "\n"

    def publish(self, at: float, *, is_alive: bool = True) -> None:
        """As an engine worker does it every second; a dead one's last word stays under its final key."""
        boot_id = f"boot{self.num_boots}"
        told = json.dumps({"boot_id": boot_id, "at": at, "exposition": self.text()})
        connection = valkey.client()
        connection.set(valkey.final_key(self.name, boot_id), told)
        if is_alive:
            connection.set(valkey.engine_key(self.name), told)
        else:
            connection.delete(valkey.engine_key(self.name))


def stored(resolution: int, engine: str | None = None) -> Counter[tuple[str, str]]:
    """Σ buckets at one resolution by (metric, tier), of the token counters; zeros left out."""
    counted = (Series.Metric.PROMPT_TOKENS, Series.Metric.COMPUTED_TOKENS, Series.Metric.HIT_TOKENS)
    sums: Counter[tuple[str, str]] = Counter()
    for row in rows(resolution=resolution, **({"engine": engine} if engine else {})):
        if row.metric in counted:
            sums[row.metric, row.cache_tier] += row.value
    return +sums
