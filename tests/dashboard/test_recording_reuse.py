"""The reuse curve, from a real engine's text into the series, to the token, and over an engine's restart."""

import random
import time
from pathlib import Path
from typing import Any

import pytest

from dashboard import engine_host
from dashboard.engine_host import EngineHost, load_host
from dashboard.jobs import Job
from dashboard.models import Resolution
from dashboard.selectors import reuse
from dashboard.selectors.period import Period
from dashboard.selectors.reuse import ReuseCurve, reuse_curve, tenant_curve, tenants_with_curves
from dashboard.services.integrity import check
from dashboard.services.sources import ensure_embedded
from tests.dashboard.test_recording_tier_costs import publish, record_at, text_of
from tests.dashboard.told import moment
from tests.engine.factories import tiny_model
from tests.engine.harness import BLOCK_SIZE, Rig, make_rig
from tests.stored import rows
from tiers.whatif.shards_buckets import COARSE_TOKENS

pytestmark = pytest.mark.usefixtures("valkey", "store")

START = 1_800_000_000


def busy(rig: Rig, seed: int) -> None:
    rng = random.Random(seed)
    for number in range(12):
        rig.ask(f"r{seed}-{number}", [rng.randrange(3)] * rng.randrange(3, 40))


def told(rig: Rig) -> ReuseCurve:
    counts = rig.engine.snapshot().counters.reuse
    return ReuseCurve(counts.bounds, counts.tokens[:-1], counts.tokens[-1], sum(counts.tokens), counts.sample_rate)


def test_a_period_has_the_curve_that_the_engine_counted() -> None:
    source, rig = ensure_embedded(), make_rig(gpu=24)
    for turn in range(3):
        busy(rig, turn)
        publish(text_of(rig), START + 10 * turn)
        record_at(source, START + 10 * turn + 1)
    found = reuse_curve(Period(START - 100, START + 100, 10))
    assert found == told(rig)
    assert found.bounds[:3] == (8, 10, 11)
    assert 0 < found.never_tokens < found.total_tokens == rig.engine.snapshot().counters.prompt_tokens
    for resolution in Resolution.values:
        stored = rows(resolution=resolution, metric="reuse_tokens")
        assert sum(row.value for row in stored) == found.total_tokens
    check(now=moment(START + 3600))
    rig.close()


def test_each_tenant_s_curve_is_recorded_to_the_token() -> None:
    longest = "a" * 32
    source, rig = ensure_embedded(), make_rig(gpu=24, tenants=("common", longest), max_tenants=2)
    for number in range(12):
        rig.run(rig.submit(f"r{number}", [number % 5] * 20, 1, tenant=("common", longest, "c")[number % 3]))
    publish(text_of(rig), START)
    record_at(source, START + 1)
    period, counters = Period(START - 100, START + 100, 10), rig.engine.snapshot().counters
    assert tenants_with_curves(engine="e1") == ["common", longest, "other"]
    assert tenants_with_curves(engine="another") == []
    assert reuse._FIRST_OCTAVE == COARSE_TOKENS
    for name, counts in counters.tenant_reuse.items():
        found = tenant_curve(period, name, engine="e1")
        assert (found.bounds, (*found.tokens, found.never_tokens)) == (counts.bounds, counts.tokens)
        assert found.total_tokens == counters.tenants[name].prompt_tokens
    rig.close()


def test_periods_add_up_and_a_restart_counts_from_zero() -> None:
    source, total = ensure_embedded(), 0
    for boot in (1, 2):
        rig = make_rig(gpu=24)
        busy(rig, boot)
        publish(text_of(rig), START + 100 * boot, f"boot{boot}")
        record_at(source, START + 100 * boot + 1)
        assert reuse_curve(Period(START + 100 * boot - 50, START + 100 * boot + 50, 10)) == told(rig)
        total += told(rig).total_tokens
        rig.close()
    assert reuse_curve(Period(START, START + 1000, 10)).total_tokens == total


# -- the host keeps the order of use ----------------------------------------------------------------------------------
@pytest.fixture
def hosted(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What `load_host` starts: a tiny model, 64 blocks in gpu, nothing else."""
    block_bytes = tiny_model().model.slab(BLOCK_SIZE).num_bytes
    settings.TIERSCOPE_HOME = tmp_path
    settings.BLOCK_SIZE = BLOCK_SIZE
    settings.REMOTE_URL = ""
    settings.TIER_BYTES = {"gpu": 64 * block_bytes, "cpu": 0, "disk": 0}
    monkeypatch.setattr(engine_host, "load", lambda *args, **kwargs: tiny_model())
    return settings


def ask(host: EngineHost, number: int) -> None:
    sampling: dict[str, Any] = {"temperature": 0.0, "max_tokens": 1, "stop": []}
    list(host.generate(Job(f"r{number}", "tiny", sampling, time.time(), prompt_token_ids=list(range(41)))))


def never_tokens(host: EngineHost) -> float:
    lines = host.describe()["exposition"].splitlines()
    return next(float(line.split()[-1]) for line in lines if 'capacity_tokens="+Inf"' in line)


def test_an_engine_knows_after_its_restart_what_was_used_before(hosted: Any) -> None:
    first = load_host("local", lambda *_: None)
    ask(first, 1)
    assert never_tokens(first) == 41
    first.stop(0, 0)
    second = load_host("local", lambda *_: None)
    ask(second, 2)
    assert never_tokens(second) == 1, "only the last token"
    second.stop(0, 0)
    assert (hosted.TIERSCOPE_HOME / "tiers" / "local" / "reuse-order").stat().st_mode & 0o777 == 0o600


def test_switched_off_nothing_is_told_or_kept(hosted: Any) -> None:
    hosted.REUSE_CURVE = False
    host = load_host("local", lambda *_: None)
    ask(host, 1)
    assert "tierscope_reuse" not in host.describe()["exposition"]
    host.stop(0, 0)
    assert not (hosted.TIERSCOPE_HOME / "tiers" / "local" / "reuse-order").exists()
