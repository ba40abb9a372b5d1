"""The host of a real engine over a tiny model: jobs as its requests, an admin's modes as its tiers'."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dashboard.engine_host import EngineHost, _recorder
from dashboard.engine_relay import HostError
from dashboard.jobs import Job
from engine.build import build_engine
from engine.engine_config import EngineConfig
from engine.recording import TraceRecord
from engine.trace_writer import NoTraceWriter, TraceWriter
from tests.engine.factories import tiny_model
from tiers import Compression, MachineLimits, Tier, TierConfig
from tiers.block_format import stored_bytes
from tiers.traces import open_trace

FIRST = {"policy": "lru", "write_mode": "write_back", "store_after_hits": 2, "load": "always", "tenant_quota": 1.0}
PROMPT = list(range(100))


@pytest.fixture
def host() -> Iterator[EngineHost]:
    loaded = tiny_model()
    block_bytes = loaded.model.slab(16).num_bytes
    tiers = (TierConfig(Tier.GPU, 64 * block_bytes), TierConfig(Tier.CPU, 8 * block_bytes))
    engine = build_engine(EngineConfig("local", tiers), loaded, MachineLimits())
    engine.start()
    host = EngineHost("local", engine, loaded)
    yield host
    host.stop(0, 0)


def test_tokens_are_counted_by_tenant_and_those_without_one_as_common(host: EngineHost) -> None:
    for number, tenant in enumerate(("acme", "acme", "")):
        hit_tokens(host, f"{number}", tenant=tenant)
    lines = host.describe()["exposition"].splitlines()
    counted = {
        line.partition('tenant="')[2] for line in lines if line.startswith("tierscope_tenant_prompt_tokens_total")
    }
    assert counted == {'other"} 0.0', 'acme"} 200.0', 'common"} 100.0'}


def test_traffic_is_recorded_where_that_is_asked_for(settings: Any, tmp_path: Path) -> None:
    settings.TIERSCOPE_HOME, settings.RECORD_TRACE_BYTES = tmp_path, 0
    assert isinstance(_recorder("local", tiny_model()), NoTraceWriter)
    assert not [*tmp_path.iterdir()]
    settings.RECORD_TRACE_BYTES = 1 << 20
    recorder = _recorder("local", tiny_model())
    assert isinstance(recorder, TraceWriter)
    recorder.put(TraceRecord(1.0, "common", [bytes(16)], [], 17, 1))
    recorder.write()
    with open_trace(tmp_path / "traces" / "recorded-local") as trace:
        assert [(request.tenant, request.num_prompt_tokens) for request in trace] == [("common", 17)]
    assert (tmp_path / "trace-secret").stat().st_mode & 0o777 == 0o600


def hit_tokens(host: EngineHost, request_id: str, **pool: Any) -> int:
    sampling: dict[str, Any] = {"temperature": 0.0, "max_tokens": 1, "stop": []}
    job = Job(request_id, "tiny", sampling, time.time(), prompt_token_ids=PROMPT, **pool)
    *_, done = host.generate(job)
    return sum(done["usage"]["hit_tokens"].values())


def told(host: EngineHost, tier: str) -> Any:
    """As the web process reads it."""
    return json.loads(json.dumps(host.describe()))["tiers"][tier]["modes"]


def test_modes_are_applied_to_the_running_engine_and_told(host: EngineHost) -> None:
    wished: dict[str, Any] = {"policy": "arc", "write_mode": "write_selective", "store_after_hits": 3}
    wished |= {"load": "when_cheaper", "tenant_quota": 0.25}
    assert (host.modes("cpu"), told(host, "cpu"), told(host, "disk")) == (FIRST, FIRST, {})
    assert host.configure("cpu", wished) == ""
    assert host.modes("cpu") == told(host, "cpu") == wished
    assert host.modes("gpu") == FIRST


@pytest.mark.parametrize(
    ("tier", "wrong", "why"),
    [
        ("cpu", {"store_after_hits": 0}, "store_after_hits is 0; expected 1 or more."),
        ("cpu", {"tenant_quota": 0}, "tenant_quota is 0; expected more than 0 and at most 1."),
        ("cpu", {"policy": "mru"}, "'mru' is not a valid Policy"),
        ("cpu", {"load": "never"}, "'never' is not a valid LoadChoice"),
    ],
)
def test_modes_that_cannot_be_are_refused_as_a_whole_with_a_reason(
    host: EngineHost, tier: str, wrong: dict[str, Any], why: str
) -> None:
    reason = host.configure(tier, FIRST | {"write_mode": "write_through"} | wrong)
    assert reason.startswith(why)
    assert reason.endswith("The tier goes on with LRU, write back, loaded always.")
    assert host.modes(tier) == told(host, tier) == FIRST


def test_a_tenant_keeps_no_more_than_its_share_of_a_tier(host: EngineHost) -> None:
    host.configure("gpu", FIRST | {"tenant_quota": 0.05})
    hit_tokens(host, "first", tenant="acme", cache_salt="one")
    hit_tokens(host, "second", tenant="acme", cache_salt="two")
    lines = host.describe()["exposition"].splitlines()
    kept = [line for line in lines if line.startswith("tierscope_tenant_resident_tokens") and 'tenant="acme"' in line]
    assert [line.rpartition(" ")[2] for line in kept if 'cache_tier="gpu"' in line] == ["48.0"]  # 3 of 64 blocks


def test_a_prompt_is_found_by_the_same_tenant_with_the_same_salt_only(host: EngineHost) -> None:
    pools: list[dict[str, str]] = [{}, {"tenant": "acme"}, {"tenant": "acme", "cache_salt": "s"}, {"cache_salt": "s"}]
    assert [hit_tokens(host, f"first {number}", **pool) for number, pool in enumerate(pools)] == [0] * 4
    assert [hit_tokens(host, f"again {number}", **pool) for number, pool in enumerate(pools)] == [96] * 4


def test_a_compressed_tier_tells_its_own_block_size_and_what_it_may_cost(tmp_path: Path) -> None:
    loaded = tiny_model()
    slab = loaded.model.slab(16)
    disk = TierConfig(Tier.DISK, 8 * slab.num_bytes, path=tmp_path, compression=Compression.INT8)
    engine = build_engine(
        EngineConfig("local", (TierConfig(Tier.GPU, 64 * slab.num_bytes), disk)), loaded, MachineLimits()
    )
    host = EngineHost("local", engine, loaded)
    told = host.describe()["tiers"]
    assert told["disk"]["block_bytes"] == host.block_bytes("disk") == stored_bytes(slab, Compression.INT8)
    assert told["disk"]["warning"] == "Its blocks are kept as int8: a hit may change an answer a little."
    assert (told["gpu"]["block_bytes"], told["gpu"]["warning"]) == (slab.num_bytes, "")
    host.stop(0, 0)


@pytest.mark.parametrize(
    "prompt",
    [
        {"prompt": "word " * 800_000},
        {"messages": [{"role": "user", "content": "word " * 800_000}]},
        {"prompt": "word " * 500},
        {"prompt_token_ids": [0] * 5000},
    ],
)
def test_a_prompt_that_cannot_fit_is_refused_with_openai_s_code_and_is_no_reason_to_try_again(
    host: EngineHost, prompt: dict[str, Any]
) -> None:
    job = Job("big", "tiny", {"temperature": 0.0, "max_tokens": 1, "stop": []}, time.time(), **prompt)
    with pytest.raises(HostError) as refused:
        next(host.generate(job))
    event = refused.value.event
    assert (event["status"], event["code"], event["is_retriable"]) == (400, "context_length_exceeded", False)


def test_what_cannot_fit_is_not_even_tokenized(host: EngineHost, monkeypatch: pytest.MonkeyPatch) -> None:
    def tokenize(*_: Any, **__: Any) -> list[int]:
        raise AssertionError("a text of 4 MB was tokenized")

    monkeypatch.setattr("engine.tokenizer.encode", tokenize)
    monkeypatch.setattr("engine.chat_prompt.encode", tokenize)
    for content in ("word " * 800_000, "<end>" * 800_000):
        job = Job(
            "big", "tiny", {"max_tokens": 1, "stop": []}, time.time(), messages=[{"role": "user", "content": content}]
        )
        with pytest.raises(
            HostError, match=r"The prompt has at least [\d,]+ tokens; with its answer it may have 512 here"
        ):
            next(host.generate(job))
