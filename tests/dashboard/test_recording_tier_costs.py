"""What tiers cost, from a real engine's text into the buckets: to the token, the block and the microsecond."""

import json
import random
from collections import Counter
from pathlib import Path

import pytest

from dashboard import valkey
from dashboard.engine_metrics import EngineCollector, Exposition
from dashboard.models import Resolution, Series, Source
from dashboard.services.integrity import check
from dashboard.services.recording import record
from dashboard.services.sources import ensure_embedded
from dashboard.sources.adapter import HISTOGRAMS, Adapted
from dashboard.sources.detection import read
from tests.dashboard.told import Engine, moment
from tests.engine.harness import BLOCK_SIZE, Rig, make_rig
from tests.stored import rows

pytestmark = pytest.mark.usefixtures("valkey", "store")

START = 1_800_000_000
Metric = Series.Metric
OF_TIERS = {
    *(Metric.LOADED_BLOCKS, Metric.STORED_BLOCKS, Metric.LOADED_BYTES, Metric.STORED_BYTES, Metric.LOAD_TIMES),
    *(Metric.LOAD_MICROSECONDS, Metric.STORE_MICROSECONDS, Metric.TIER_ERRORS, Metric.EVICTED_BLOCKS),
    *(Metric.ENTERED_TOKENS, Metric.LEFT_TOKENS, Metric.MISSED_TOKENS),
}
OF_TENANTS = {Metric.TENANT_PROMPT_TOKENS, Metric.TENANT_COMPUTED_TOKENS, Metric.TENANT_HIT_TOKENS}
COUNTED = OF_TIERS | OF_TENANTS | {Metric.PREFILL_TOKENS, Metric.PREFILL_MICROSECONDS}


def text_of(rig: Rig) -> str:
    return Exposition(EngineCollector(rig.engine.snapshot, engine="e1", model_name="m", block_size=BLOCK_SIZE)).text()


def publish(text: str, at: float, boot_id: str = "boot1") -> None:
    told = json.dumps({"boot_id": boot_id, "at": at, "exposition": text})
    valkey.client().set(valkey.engine_key("e1"), told)


def record_at(source: Source, seconds: float) -> None:
    Source.objects.filter(pk=source.pk).update(due_at=moment(seconds))
    assert record(source.pk, now=moment(seconds), connection=valkey.client())


def counted(adapted: Adapted) -> Counter[tuple[str, str, str]]:
    return Counter({(k.metric, k.cache_tier, k.detail): v for k, v in adapted.counters.items() if k.metric in COUNTED})


def stored(resolution: int) -> Counter[tuple[str, str, str]]:
    sums: Counter[tuple[str, str, str]] = Counter()
    for row in rows(resolution=resolution):
        if row.metric in COUNTED:
            sums[row.metric, row.cache_tier, row.detail] += row.value
    return sums


def busy(rig: Rig, seed: int) -> None:
    """Prompts that share beginnings, more than the tiers hold together."""
    rng = random.Random(seed)
    starts = [[rng.randrange(90) for _ in range(64)] for _ in range(4)]
    for number in range(16):
        start = rng.choice(starts)[: 4 * rng.randrange(4, 16)]
        rig.ask(f"r{seed}-{number}", [*start, *(rng.randrange(90) for _ in range(rng.randrange(3, 16)))])


def test_tokens_by_tenant_are_all_tokens_tier_by_tier_at_every_resolution() -> None:
    source = ensure_embedded()
    rig = make_rig(gpu=24, cpu=24, tenants=("acme",), max_tenants=2)
    for number in range(24):
        rig.submit(f"r{number}", [number % 2] * 20, 1, salt=str(number % 4), tenant=("acme", "b", "c", "d")[number % 4])
        rig.run()
        publish(text_of(rig), START + 10 * number)
        record_at(source, START + 10 * number + 1)
    pairs = {
        Metric.TENANT_PROMPT_TOKENS: Metric.PROMPT_TOKENS,
        Metric.TENANT_COMPUTED_TOKENS: Metric.COMPUTED_TOKENS,
        Metric.TENANT_HIT_TOKENS: Metric.HIT_TOKENS,
    }
    for resolution in Resolution.values:
        by_tenant, everything = (Counter[tuple[str, str]]() for _ in range(2))
        for row in rows(resolution=resolution):
            if row.metric in pairs:
                by_tenant[pairs[Metric(row.metric)], row.cache_tier] += row.value
            elif row.metric in pairs.values():
                everything[row.metric, row.cache_tier] += row.value
        assert by_tenant == everything
        assert everything["prompt_tokens", ""] == 24 * 20
    named = Series.objects.filter(metric=Metric.TENANT_PROMPT_TOKENS).values_list("detail", flat=True)
    assert set(named) == {"acme", "b", "other"}


def test_every_resolution_holds_what_the_engine_counted_of_its_tiers(tmp_path: Path) -> None:
    source = ensure_embedded()
    rig = make_rig(gpu=24, cpu=8, disk=12, path=tmp_path, max_num_batched_tokens=96)
    for turn in range(3):
        busy(rig, turn)
        publish(text_of(rig), START + 10 * turn)
        record_at(source, START + 10 * turn + 1)
    truth = counted(read(text_of(rig), "tierscope"))
    rig.close()

    assert all(stored(resolution) == +truth for resolution in Resolution.values)
    assert {metric for metric, *_ in +truth} >= COUNTED - {Metric.TIER_ERRORS}, "the workload moves all of them"
    check(now=moment(START + 3600))


def test_loads_by_time_add_up_to_the_blocks_that_were_loaded(tmp_path: Path) -> None:
    rig = make_rig(gpu=24, cpu=8, disk=12, path=tmp_path)
    busy(rig, 1)
    told = counted(read(text_of(rig), "tierscope"))
    rig.close()
    for tier in ("cpu", "disk"):
        times = sum(value for (metric, at, _), value in told.items() if (metric, at) == (Metric.LOAD_TIMES, tier))
        assert times == told[Metric.LOADED_BLOCKS, tier, ""] > 0


def test_a_restart_counts_everything_since_the_new_start(tmp_path: Path) -> None:
    source = ensure_embedded()
    sums: Counter[tuple[str, str, str]] = Counter()
    for boot in (1, 2):
        rig = make_rig(gpu=24, cpu=8)
        busy(rig, boot)
        publish(text_of(rig), START + 10 * boot, f"boot{boot}")
        record_at(source, START + 10 * boot + 1)
        sums += counted(read(text_of(rig), "tierscope"))
        rig.close()
    assert stored(10) == +sums


def test_what_an_engine_does_not_tell_has_no_series(tmp_path: Path) -> None:
    source, engine = ensure_embedded(), Engine("e1")
    engine.serve({"gpu": 16}, computed=4)
    publish(engine.text(), START)
    record_at(source, START + 1)
    assert not Series.objects.filter(metric__in=[*OF_TIERS, Metric.SKIPPED_TOKENS, Metric.PREFILL_TOKENS]).exists()
    publish(
        engine.text() + 'tierscope_tier_load_skipped_tokens_total{model_name="smol",cache_tier="disk"} 0\n', START + 9
    )
    record_at(source, START + 10)
    assert Series.objects.filter(metric=Metric.SKIPPED_TOKENS).count() == 1


def test_a_load_histogram_that_is_not_cumulative_costs_only_itself() -> None:
    engine = Engine()
    lines = [("0.1", 5), ("1.0", 3), ("+Inf", 9)]
    name = "tierscope_tier_load_seconds_bucket"
    text = "".join(f'{name}{{model_name="m",cache_tier="disk",le="{le}"}} {count}\n' for le, count in lines)
    adapted = read(engine.text() + text, "tierscope")
    assert {key.metric for key in adapted.counters if key.metric in HISTOGRAMS} == {Metric.TTFT.value}
    assert adapted.problems == ("The histogram of load times is not cumulative: it is skipped this time.",)


def test_whether_a_tier_is_up_is_a_gauge_and_how_often_it_was_given_up_a_counter() -> None:
    source, engine = ensure_embedded(), Engine("e1")
    engine.serve({"gpu": 16}, computed=4)
    labels = 'model_name="smol",cache_tier="remote"'
    for second, is_up, num_given_up in ((0, 1, 0), (10, 0, 1), (20, 0, 1)):
        told = f"tierscope_tier_up{{{labels}}} {is_up}\ntierscope_tier_given_up_total{{{labels}}} {num_given_up}\n"
        publish(engine.text() + told, START + second)
        record_at(source, START + second + 1)
    (up,) = rows(metric="up", resolution=86400)
    assert (up.value, up.num_samples) == (1, 3)
    assert [row.value for row in rows(metric="given_up", resolution=86400)] == [1]
