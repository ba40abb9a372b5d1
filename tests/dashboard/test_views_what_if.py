"""The what-if page and its JSON: at today's sizes what was measured, sizes from the address, honest obstacles."""

import time
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from dashboard.models import Prices, Source, TierChange
from dashboard.services.tiers import ensure_settings
from tests.dashboard.live_engine import BLOCK_BYTES, publish
from tests.dashboard.seeded import SeededEngine, lively

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("valkey")]
SIZES = {"gpu": 130, "cpu": 200, "disk": 2_750}


@pytest.fixture
def browser(client: Client) -> Client:
    client.force_login(User.objects.create_user("ada"))
    return client


@pytest.fixture
def hour(valkey: str) -> SeededEngine:
    """A quarter of one, from an engine whose tiers reach 2,080, 5,280 and 49,280 tokens deep."""
    engine = lively(time.time(), seconds=900)
    engine.store(time.time())
    told: dict[str, Any] = {tier: {"capacity_bytes": blocks * BLOCK_BYTES} for tier, blocks in SIZES.items()}
    publish(**told)
    return engine


def get(browser: Client, query: str = "?range=1h", address: str = "/api/what-if.json") -> Any:
    response = browser.get(address + query)
    assert response.status_code == 200, response.content
    return response.json()


def refused(browser: Client, query: str, address: str = "/api/what-if.json") -> str:
    response = browser.get(address + query)
    assert response.status_code == 400, response.content
    return str(response.json()["error"])


@pytest.mark.usefixtures("hour")
def test_at_today_s_sizes_the_measured_split_is_predicted(browser: Client) -> None:
    told = get(browser)
    assert told["obstacle"] == ""
    assert told["is_today"]
    assert set(told["predicted"]["hit"]) == {"gpu", "cpu", "disk"}
    for tier, share in told["measured"]["hit"].items():
        assert told["predicted"]["hit"][tier] == pytest.approx(share, abs=0.002)
    assert told["predicted"]["ttft_seconds"] == pytest.approx(told["measured"]["ttft_seconds"], rel=0.01)
    assert told["predicted"]["ttft_p95_seconds"] == pytest.approx(told["measured"]["ttft_p95_seconds"], rel=0.01)


@pytest.mark.usefixtures("hour")
def test_a_larger_tier_takes_hits_from_slower_ones(browser: Client) -> None:
    today, larger = get(browser)["predicted"], get(browser, "?range=1h&gpu=1 GiB")["predicted"]
    assert larger["hit"]["gpu"] == pytest.approx(today["hit_rate"], abs=0.001)
    assert larger["hit"]["disk"] == 0
    assert larger["ttft_seconds"] < today["ttft_seconds"]
    smaller = get(browser, "?range=1h&disk=0")["predicted"]
    assert smaller["hit"]["disk"] == 0
    assert smaller["ttft_seconds"] > today["ttft_seconds"]


@pytest.mark.usefixtures("hour")
def test_one_tenant_s_split_is_predicted_beside_its_measured_one(browser: Client) -> None:
    whole = get(browser)
    assert (whole["tenant"], whole["tenants"]) == (None, ["common", "acme", "umbrella"])
    for tenant in ("common", "acme"):
        told = get(browser, f"?range=1h&tenant={tenant}")
        assert (told["tenant"], told["obstacle"]) == (tenant, "")
        for tier, share in told["measured"]["hit"].items():
            assert told["predicted"]["hit"][tier] == pytest.approx(share, abs=0.01)
        assert told["measured"]["hit"] != whole["measured"]["hit"]
        assert (told["predicted"]["ttft_seconds"], told["predicted"]["dollars_a_month"]) == (None, None)
        assert told["curve"][-1][0] == whole["curve"][-1][0]
        assert any(f"Only the prompts of {tenant}." in note["text"] for note in told["notes"])
    tokens = [get(browser, f"?range=1h&tenant={tenant}")["prompt_tokens"] for tenant in whole["tenants"]]
    assert sum(tokens) == whole["prompt_tokens"]


@pytest.mark.usefixtures("hour")
def test_of_a_tenant_without_prompts_nothing_is_predicted(browser: Client) -> None:
    assert get(browser, "?range=1h&tenant=nobody")["obstacle"].startswith("No reuse was counted in this period")


def test_what_is_recorded_meanwhile_is_in_the_next_answer(browser: Client, hour: SeededEngine) -> None:
    before = get(browser)["prompt_tokens"]
    assert get(browser)["prompt_tokens"] == before
    more = SeededEngine(engine="local", source_name="another")
    more.scrape(time.time() - 20, {}, {})
    more.request(time.time() - 20, {"gpu": 64}, 36, ttft=0.1)
    more.store(time.time() + 1)
    assert get(browser)["prompt_tokens"] == before + 100


def test_a_slider_moves_what_the_page_shows_until_it_is_read_anew(browser: Client, hour: SeededEngine) -> None:
    before = get(browser)["prompt_tokens"]
    more = SeededEngine(engine="local", source_name="another")
    more.scrape(time.time() - 20, {}, {})
    more.request(time.time() - 20, {"gpu": 64}, 36, ttft=0.1)
    more.store(time.time() + 1)
    assert get(browser, "?range=1h&move=1&gpu=1 GiB")["prompt_tokens"] == before
    assert get(browser, "?range=24h&move=1")["prompt_tokens"] == before + 100, "that page was never shown"
    assert get(browser)["prompt_tokens"] == before + 100
    assert get(browser, "?range=1h&move=1")["prompt_tokens"] == before + 100


@pytest.mark.usefixtures("hour")
def test_a_running_engine_tells_its_sizes_limits_and_modes(browser: Client) -> None:
    modes = {"policy": "lru", "write_mode": "write_through", "store_after_hits": 2, "load": "always"}
    gpu, cpu, disk = (n * BLOCK_BYTES for n in (130, 60, 300))
    publish(gpu={"capacity_bytes": gpu}, cpu={"capacity_bytes": cpu, "modes": modes}, disk={"capacity_bytes": disk})
    told = get(browser, "?range=1h&disk=9 GiB")
    tiers = {tier["tier"]: tier for tier in told["tiers"]}
    assert tiers["gpu"]["tokens_text"] == "2,080 tokens"
    assert told["predicted"]["hit"]["cpu"] == 0  # copies of what gpu has
    assert tiers["disk"]["limit_text"] == "The machine has room for 8 GiB."


@pytest.mark.usefixtures("hour")
def test_what_is_no_lru_or_stores_selectively_is_said_to_be_an_estimate(browser: Client) -> None:
    modes = {"policy": "arc", "write_mode": "write_selective", "store_after_hits": 2, "load": "when_cheaper"}
    modes |= {"tenant_quota": 0.5}
    publish(gpu={}, cpu={"modes": modes}, remote={})
    assumed = " ".join(note["text"] for note in get(browser)["notes"] if note["kind"] == "assumed")
    assert "cpu evicts by ARC; the prediction is for LRU" in assumed
    assert "cpu stores blocks once they are used again; it is counted as if it stored all: an estimate." in assumed
    assert "cpu is read only where that is cheaper" in assumed
    assert "cpu keeps at most 50 % for one tenant" in assumed
    assert "remote is counted as if no other engine used it" in assumed


@pytest.mark.usefixtures("hour")
def test_each_tier_has_a_sentence_about_its_next_gib(browser: Client) -> None:
    sentences = {tier["tier"]: tier["next_gib"] for tier in get(browser)["tiers"]}
    assert sentences["gpu"].startswith("The next GiB of gpu would serve ")
    assert "mean time to first token −" in sentences["gpu"]
    told = get(browser, "?range=1h&disk=60 GiB")
    assert "disk would bring nothing" in next(t["next_gib"] for t in told["tiers"] if t["tier"] == "disk")


@pytest.mark.usefixtures("hour")
def test_the_bill_is_shown_where_prices_are_typed_only(browser: Client) -> None:
    told = get(browser)
    assert told["predicted"]["dollars_a_month"] is None
    assert told["prices_text"].startswith("No prices are typed in")
    Prices.objects.create(pk=1, cpu_gib_month=2, gpu_hour=3)
    told = get(browser, "?range=1h&cpu=2 GiB")
    rows = {row["name"]: row["chosen"] for row in told["rows"]}
    assert rows["for cpu memory"] == "$4.00"
    assert "for computing prompts" in rows
    assert told["predicted"]["dollars_a_month"] == pytest.approx(
        4 + float(rows["for computing prompts"].removeprefix("$").replace(",", "")), abs=0.02
    )
    assert (
        told["prices_text"] == "Not in the bill, since no price is typed in under Prices: a GiB of gpu, a GiB of disk."
    )


@pytest.mark.usefixtures("hour")
def test_sizes_that_are_no_sizes_are_refused_with_the_tier_s_name(browser: Client) -> None:
    assert refused(browser, "?cpu=lots") == "cpu: “lots” is not a size; write it like 2 GiB, 512 MiB or 0."


@pytest.mark.usefixtures("hour")
def test_a_change_of_the_tiers_within_the_period_is_said(browser: Client) -> None:
    from django.utils import timezone

    TierChange.objects.create(
        engine="local", cache_tier="cpu", action="resize", old_value="1", new_value="2", at=timezone.now()
    )
    assert any("of several sizes" in note["text"] for note in get(browser)["notes"])


def test_too_little_traffic_is_said_with_the_minutes_that_are_missing(browser: Client) -> None:
    now = time.time()
    engine = SeededEngine()
    for age in range(300, 0, -10):
        engine.scrape(now - age, {"gpu": 16}, {"gpu": 2_080})
    engine.request(now - 100, {"gpu": 1_000}, 1_000, ttft=0.1)
    engine.store(now)
    told = get(browser, "?range=5m")
    assert told["obstacle"].startswith(
        "2,000 prompt tokens were counted in this period: a prediction needs 20 more minutes"
    )
    assert "predicted" not in told


def test_without_any_engine_the_page_says_what_is_missing(browser: Client) -> None:
    assert get(browser)["obstacle"].startswith("No reuse was counted in this period")
    assert browser.get("/what-if/").status_code == 200


@pytest.mark.parametrize(
    ("kind", "words"), [("vllm", "--kv-cache-metrics"), ("sglang", "SGLang tells"), ("auto", "manage.py whatif")]
)
def test_a_watched_engine_without_a_curve_is_told_what_to_switch_on(browser: Client, kind: str, words: str) -> None:
    engine = SeededEngine(engine="gpu-7/0", source_name="gpu-7")
    Source.objects.create(name="gpu-7", kind=kind, url="http://gpu-7:8000/metrics")
    engine.add(time.time() - 60, "prompt_tokens", 100_000)
    engine.store(time.time())
    told = get(browser, "?range=1h&engine=gpu-7/0")
    assert words in told["obstacle"]
    assert told["obstacle"].count(".") <= 3


def watched_vllm(num_gaps: int, hit_tokens: int = 500_000) -> None:
    """A cache of 100,000 tokens, 128 GB, that evicts after 100 s and hits half of the tokens; half of those at once."""
    engine = SeededEngine(engine="gpu-7/0", source_name="gpu-7")
    Source.objects.create(name="gpu-7", kind="vllm", url="http://gpu-7:8000/metrics")
    at = time.time() - 60
    engine.add(at, "prompt_tokens", 1_000_000)
    engine.add(at, "hit_tokens", hit_tokens, tier="gpu")
    for metric, size in (("capacity_tokens", 100_000), ("capacity_bytes", 128 * 10**9)):
        engine.add(at, metric, size, tier="gpu")
    engine.add(at, "idle_blocks", 1_000, tier="gpu")
    engine.add(at, "idle_microseconds", 100_000 * 10**6, tier="gpu")
    for bound, part in (("0.001", 0.5), ("50", 0.25), ("100", 0.25), ("+Inf", 0.0)):
        engine.add(at, "reuse_gaps", round(num_gaps * part), tier="gpu", detail=bound)
    engine.store(time.time())


def test_a_watched_vllm_that_tells_its_blocks_waits_gets_an_estimate_up_to_today_s_size(browser: Client) -> None:
    watched_vllm(4_000)
    told = get(browser, "?range=1h&engine=gpu-7/0&gpu=64 GB")
    assert told["obstacle"] == ""
    assert told["measured"]["hit"] == {"gpu": 0.5}
    assert told["predicted_today"]["hit"] == {"gpu": pytest.approx(0.5)}
    # Half of the depth lies at a little less than half of the time: later accesses go deeper more slowly.
    assert 0.35 < told["predicted"]["hit"]["gpu"] < 0.4
    (gpu,) = told["tiers"]
    assert gpu["most_bytes"] == gpu["today_bytes"]
    assert told["apply_url"] == ""
    assert any("An estimate" in note["text"] for note in told["notes"])


def test_what_a_watched_engine_does_not_tell_is_reckoned_from_what_was_typed(browser: Client) -> None:
    watched_vllm(4_000)
    engine = SeededEngine(engine="gpu-7/0", source_name="gpu-7")
    engine.add(time.time() - 60, "scrapes", 1)
    engine.add(time.time() - 60, "ttft", 100, detail="1.0")
    engine.add(time.time() - 60, "ttft_microseconds", 50 * 10**6)
    engine.store(time.time())
    query = "?range=1h&engine=gpu-7/0&gpu=64 GB"
    assert get(browser, query)["predicted"]["ttft_seconds"] is None
    Source.objects.filter(name="gpu-7").update(typed_prefill="0: 20000, 10000: 10000")
    Prices.objects.create(pk=1, gpu_hour=2)
    told = get(browser, query)
    # Prompts of 10,000 tokens: less is hit of each, and what is computed more begins where less was hit.
    assert told["measured"]["ttft_seconds"] == 0.5
    assert 0.5 + 0.11 * 10_000 * 0.00006 < told["predicted"]["ttft_seconds"] < 0.5 + 0.15 * 10_000 * 0.00008
    assert told["predicted"]["dollars_a_month"] > told["measured"]["dollars_a_month"] > 0
    assert any("computing 1,000 tokens took 75 ms (typed in)" in note["text"] for note in told["notes"])


def test_nothing_is_said_of_a_larger_cache_than_a_watched_one_is(browser: Client) -> None:
    watched_vllm(4_000)
    (gpu,) = get(browser, "?range=1h&engine=gpu-7/0")["tiers"]
    assert gpu["next_gib"].endswith("nothing tells: it would be more than today's.")
    assert refused(browser, "?range=1h&engine=gpu-7/0&gpu=256 GB") == (
        "gpu: what more than today's 119.21 GiB would serve, nothing tells."
    )


def test_nothing_is_said_of_it_in_the_file_either(browser: Client) -> None:
    watched_vllm(4_000)
    address = "/api/charts/what-if-split.csv"
    assert browser.get(f"{address}?range=1h&engine=gpu-7/0&gpu=64 GB").status_code == 200
    assert "nothing tells" in refused(browser, "?range=1h&engine=gpu-7/0&gpu=256 GB", address)


def test_few_waits_tell_nothing(browser: Client) -> None:
    watched_vllm(100)
    assert "--kv-cache-metrics" in get(browser, "?range=1h&engine=gpu-7/0")["obstacle"]


def test_counts_that_cannot_be_tell_nothing(browser: Client) -> None:
    watched_vllm(4_000, hit_tokens=1_000_001)
    assert "--kv-cache-metrics" in get(browser, "?range=1h&engine=gpu-7/0")["obstacle"]


@pytest.mark.usefixtures("hour")
def test_the_way_to_apply_leads_to_the_admin_with_sizes_and_period(browser: Client) -> None:
    assert get(browser)["apply_url"] == ""
    ensure_settings("local", {"gpu": 2**20, "cpu": 2**20})
    url = get(browser, "?range=1h&cpu=2 MiB")["apply_url"]
    assert url.startswith("/admin/dashboard/tiersetting/apply/?engine=local&start=")
    assert f"&gpu={130 * BLOCK_BYTES}&cpu={2**21}&disk=" in url
