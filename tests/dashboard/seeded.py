"""Fills the series store as the recorder would, with traffic whose every number is known."""

import math
import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from django.db import transaction
from django.utils import timezone

from dashboard.models import RequestLog, Resolution, Series, Source
from dashboard.services import chunks
from dashboard.services.amounts import with_totals
from dashboard.services.increases import COLUMNS, create_series

MODEL = "SmolLM2-135M-Instruct"
Metric = Series.Metric
Key = tuple[str, str, str]  # metric, cache_tier, detail
_TTFT_BOUNDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
REUSE_BOUNDS = tuple(int(16 * 2 ** (step / 2)) for step in range(33))
_RESOLUTIONS = tuple(Resolution.values)  # which Django makes anew each time
_REUSED_AT = {"gpu": "1024", "cpu": "4096", "disk": "8192"}


@dataclass
class SeededEngine:
    """Collects what one engine did, then stores it at every resolution."""

    engine: str = "local"
    model_name: str = MODEL
    source_name: str = "embedded"
    amounts: dict[tuple[Key, int, int], list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))

    def add(self, at: float, metric: str, value: int, *, tier: str = "", detail: str = "") -> None:
        for resolution in _RESOLUTIONS:
            cell = self.amounts[(metric, tier, detail), resolution, int(at) // resolution * resolution]
            cell[0] += value
            cell[1] += 1

    def scrape(self, at: float, resident: dict[str, int], capacity: dict[str, int]) -> None:
        self.add(at, Metric.SCRAPES, 1)
        for tier, tokens in resident.items():
            self.add(at, Metric.RESIDENT_TOKENS, tokens, tier=tier)
            self.add(at, Metric.CAPACITY_TOKENS, capacity[tier], tier=tier)
            self.add(at, Metric.CAPACITY_BYTES, 46_080 * capacity[tier], tier=tier)

    def request(self, at: float, hits: dict[str, int], computed: int, ttft: float, *, tenant: str = "common") -> None:
        self.add(at, Metric.PROMPT_TOKENS, sum(hits.values()) + computed)
        self.add(at, Metric.COMPUTED_TOKENS, computed)
        for tier, tokens in hits.items():
            self.add(at, Metric.HIT_TOKENS, tokens, tier=tier)
            self.add(at, Metric.TENANT_HIT_TOKENS, tokens, tier=tier, detail=tenant)
        self.add(at, Metric.TENANT_PROMPT_TOKENS, sum(hits.values()) + computed, detail=tenant)
        self.add(at, Metric.TENANT_COMPUTED_TOKENS, computed, detail=tenant)
        self.add(at, Metric.REQUESTS, 1, detail="stop")
        slowest = next((tier for tier in ("remote", "disk", "cpu", "gpu") if hits.get(tier)), "")
        bound = next((bound for bound in _TTFT_BOUNDS if ttft <= bound), math.inf)
        self.add(at, Metric.TTFT, 1, tier=slowest, detail="+Inf" if bound == math.inf else str(bound))
        self.add(at, Metric.TTFT_MICROSECONDS, round(1_000_000 * ttft), tier=slowest)
        self.copies(at, hits, computed)
        self.reuse(at, hits, computed, tenant)

    def reuse(self, at: float, hits: dict[str, int], computed: int, tenant: str) -> None:
        """Each hit where exclusive tiers of the usual sizes reach; of the rest a half would have hit in larger ones."""
        self.add(at, Metric.REUSE_SAMPLE_PPM, 1_000_000)
        if not any(metric == Metric.REUSE_TOKENS for (metric, _, _), _, _ in self.amounts):
            for bound in REUSE_BOUNDS:
                self.add(at, Metric.REUSE_TOKENS, 0, detail=str(bound))
        found = [(_REUSED_AT.get(tier, "+Inf"), tokens) for tier, tokens in hits.items()]
        found += [("131072", computed // 3), ("524288", computed // 6)]
        found += [("+Inf", computed - computed // 3 - computed // 6)]
        for detail, tokens in found:
            self.add(at, Metric.REUSE_TOKENS, tokens, detail=detail)
            self.add(at, Metric.TENANT_REUSE_TOKENS, tokens, detail=f"{detail} {tenant}")

    def copies(self, at: float, hits: dict[str, int], computed: int) -> None:
        """What write-back tiers move for it: hits come up, as many computed blocks go down; 2 ms a computed token."""
        self.add(at, Metric.PREFILL_TOKENS, computed)
        self.add(at, Metric.PREFILL_MICROSECONDS, 2_000 * computed)
        self.add(at, Metric.ENTERED_TOKENS, computed // 16 * 16, tier="gpu", detail="computed")
        for tier, below, bound, microseconds in (("cpu", "gpu", "0.0005", 300), ("disk", "cpu", "0.005", 3_000)):
            loaded, stored = hits.get(tier, 0) // 16, computed // 16
            self._copied(at, tier, "loaded", loaded)
            self._copied(at, tier, "stored", stored)
            self.add(at, Metric.LOAD_TIMES, loaded, tier=tier, detail=bound)
            self.add(at, Metric.LOAD_TIMES, 0, tier=tier, detail="0.0001")
            self.add(at, Metric.LOAD_MICROSECONDS, microseconds * loaded, tier=tier)
            self.add(at, Metric.STORE_MICROSECONDS, microseconds * stored, tier=tier)
            self.add(at, Metric.ENTERED_TOKENS, 16 * loaded, tier="gpu", detail=tier)
            self.add(at, Metric.LEFT_TOKENS, 16 * loaded, tier=tier, detail="gpu")
            self.add(at, Metric.ENTERED_TOKENS, 16 * stored, tier=tier, detail=below)
            self.add(at, Metric.LEFT_TOKENS, 16 * stored, tier=below, detail=tier)
            self.add(at, Metric.TIER_ERRORS, int(stored > 0), tier=tier, detail="store")
            self.add(at, Metric.SKIPPED_TOKENS, 16, tier=tier)

    def _copied(self, at: float, tier: str, how: str, num_blocks: int) -> None:
        self.add(at, f"{how}_blocks", num_blocks, tier=tier)
        self.add(at, f"{how}_bytes", 737_280 * num_blocks, tier=tier)

    def store(self, last_ok_at: float) -> None:
        """Writes it all; `last_ok_at` is when the source was last seen."""
        source, _ = Source.objects.get_or_create(name=self.source_name, defaults={"kind": Source.Kind.EMBEDDED})
        Source.objects.filter(pk=source.pk).update(last_ok_at=datetime.fromtimestamp(last_ok_at, UTC))
        create_series((source.pk, self.engine, self._columns(key)) for key in {key for key, _, _ in self.amounts})
        known = Series.objects.filter(source=source, engine=self.engine).values_list("pk", *COLUMNS)
        series = {tuple(columns): pk for pk, *columns in known}
        with transaction.atomic():
            chunks.add(
                with_totals(
                    {
                        (series[self._columns(key)], resolution, start): (value, num_samples)
                        for (key, resolution, start), (value, num_samples) in self.amounts.items()
                    }
                )
            )

    def _columns(self, key: Key) -> tuple[str, ...]:
        return (self.model_name, *key)


def counted(
    name: str,
    *,
    hits: dict[str, int],
    computed: int | None,
    now: float,
    source: str = "",
    model: str = MODEL,
    age: float = 100,
) -> None:
    """An engine that was looked at once, `age` seconds ago, and told so many tokens; computed ones not with None."""
    told = SeededEngine(engine=name, model_name=model, source_name=source or name.partition("/")[0])
    told.scrape(now - age, {}, {})
    told.add(now - age, "prompt_tokens", sum(hits.values()) + (computed or 0))
    for tier, tokens in hits.items():
        told.add(now - age, "hit_tokens", tokens, tier=tier)
    if computed is not None:
        told.add(now - age, "computed_tokens", computed)
    told.store(now)


TENANTS = ("common", "acme", "umbrella")
CAPACITY = {"gpu": 2_080, "cpu": 4_160, "disk": 44_000}


def lively(now: float, *, seconds: int = 3_600, seed: int = 7, gap: tuple[float, float] | None = None) -> SeededEngine:
    """An engine whose tiers fill up over `seconds`; `gap` (seconds before now, from and to) was not observed."""
    rng = random.Random(seed)
    engine = SeededEngine()
    for age in range(seconds, 0, -10):
        if gap and gap[0] >= age >= gap[1]:
            continue
        progress = 1 - age / seconds
        resident = {tier: round(size * min(1, progress * speed)) for (tier, size), speed in _FILL.items()}
        engine.scrape(now - age, resident, CAPACITY)
        for number in range(rng.randint(0, 3) if math.sin(age / 90) > -0.7 else 0):
            engine.request(now - age, *_split(rng, progress), tenant=TENANTS[number])
    return engine


_FILL = {("gpu", 2_080): 6.0, ("cpu", 4_160): 2.5, ("disk", 44_000): 0.7}


def _split(rng: random.Random, progress: float) -> tuple[dict[str, int], int, float]:
    """Later requests hit more, and also slower tiers."""
    blocks = rng.randint(8, 40)
    reuse = 0.15 + 0.75 * progress * rng.random()
    gpu = round(blocks * reuse * 0.6)
    cpu = round(blocks * reuse * 0.25) if progress > 0.2 else 0
    disk = round(blocks * reuse * 0.25) if progress > 0.45 and rng.random() < 0.6 else 0
    computed = max(1, (blocks - gpu - cpu - disk) * 16 + rng.randint(1, 15))
    ttft = computed / 400 + 0.012 + cpu * 0.0004 + disk * 0.004
    return {"gpu": gpu * 16, "cpu": cpu * 16, "disk": disk * 16}, computed, ttft


def seed_requests(count: int, *, now: float | None = None, seed: int = 3) -> None:
    """`count` answered requests, one a minute back from now."""
    rng = random.Random(seed)
    end = now or timezone.now().timestamp()
    RequestLog.objects.bulk_create(list(_logged(rng, count, end)))


def _logged(rng: random.Random, count: int, end: float) -> Iterator[RequestLog]:
    for index in range(count):
        hits, computed, ttft = _split(rng, rng.random())
        at = datetime.fromtimestamp(end - 60 * index, UTC)
        yield RequestLog(
            request_id=f"chatcmpl-{seed_id(rng)}",
            engine="local",
            model_name=MODEL,
            received_at=at,
            finished_at=at,
            prompt_tokens=sum(hits.values()) + computed,
            hit_gpu_tokens=hits["gpu"],
            hit_cpu_tokens=hits["cpu"],
            hit_disk_tokens=hits["disk"],
            computed_tokens=computed,
            generated_tokens=rng.randint(1, 64),
            slowest_tier=next((tier for tier in ("disk", "cpu", "gpu") if hits[tier]), ""),
            ttft_seconds=ttft,
            finish_reason=rng.choice(["stop", "length", "stop", "stop", "abort"]),
        )


def seed_id(rng: random.Random) -> str:
    return f"{rng.getrandbits(96):024x}"
