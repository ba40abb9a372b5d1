"""One workload, one truth about the tiers: what moved, was loaded and stored is what a list a tier says, and /metrics,
the stored series, the cards, the Sankey and the chart all say it. Real model, real processes.
"""

import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.looks import buckets, change, logged_in, rows
from tests.e2e.stack import Stack
from tests.e2e.workload import BLOCK_BYTES, BLOCK_SIZE, FILE_BYTES, StackOracle, conversations, sizes_in_env

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

SEED, NUM_REQUESTS = 9, 36
TIERS = ("gpu", "cpu", "disk", "remote")
# The three that are exclusive and one stack; without the server, which keeps copies of what is in the others.
SIZES = {"gpu": 20, "cpu": 14, "disk": 14}
Flow = tuple[str, str]  # from, to


class MovingOracle(StackOracle):
    """The stack, which also counts the blocks that cross from one of its pieces into another."""

    def __init__(self) -> None:
        super().__init__(SIZES)
        self.moved: Counter[Flow] = Counter()

    def request(self, prompt: list[int]) -> Counter[str]:
        """A block that is computed again although a slower tier has it is freed there."""
        before = {key: self._tier(depth) for depth, key in enumerate(self.stack)}
        split = super().request(prompt)
        num_hits = (split.total() - split["computed"]) // BLOCK_SIZE
        after = {key: self._tier(depth) for depth, key in enumerate(self.stack)}
        order = list(before)
        asked = [tuple(prompt[:end]) for end in range(BLOCK_SIZE, len(prompt) + 1, BLOCK_SIZE)]
        for index, key in enumerate(asked):
            was = before.get(key)
            if index < num_hits or was == "gpu":
                self.moved[str(was), "gpu"] += was != "gpu"
            else:
                self.moved["computed", "gpu"] += 1
                self.moved[str(was), "freed"] += was is not None
        for key in order:
            if key not in asked:
                self._down(before[key], after.get(key))
        return split

    def _down(self, tier: str, to: str | None) -> None:
        """One step at a time; out of the last tier nobody has it any more."""
        names = list(self.sizes)
        while tier != to:
            below = names[names.index(tier) + 1] if tier != names[-1] else "dropped"
            self.moved[tier, below] += 1
            if below == "dropped":
                return
            tier = below


@pytest.fixture(scope="module")
def truth() -> Counter[Flow]:
    """Tokens by where they came from and where they went."""
    oracle = MovingOracle()
    for prompt in conversations(SEED, NUM_REQUESTS):
        oracle.request(prompt)
    return +Counter({flow: blocks * BLOCK_SIZE for flow, blocks in oracle.moved.items()})


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    sizes = sizes_in_env(SIZES) | {"TIERSCOPE_REMOTE_BYTES": "0"}
    stack = Stack(tmp_path_factory.mktemp("tiers"), names=("valkey", "web", "engine", "worker"), env=sizes)
    try:
        stack.start()
        client = stack.openai()
        model = client.models.list().data[0].id
        for prompt in conversations(SEED, NUM_REQUESTS):
            client.completions.create(model=model, prompt=prompt, max_tokens=1, temperature=0)
            time.sleep(0.1)  # the copies that it started have ended: requests are sequential for the tiers, too
        time.sleep(2)  # published once a second
        yield stack
    finally:
        stack.stop()


@pytest.fixture(scope="module")
def told(stack: Stack) -> dict[tuple[str, str, str], float]:
    """(name, cache_tier, the label beside it) → value, of /metrics at rest."""
    return {
        (sample.name, sample.labels.get("cache_tier", ""), _other(sample.labels)): sample.value
        for family in text_string_to_metric_families(stack.metrics())
        for sample in family.samples
    }


def _other(labels: dict[str, str]) -> str:
    return next((labels[name] for name in ("origin", "to", "le", "op", "reason") if name in labels), "")


@pytest.fixture(scope="module")
def page(stack: Stack, told: dict[Any, float]) -> Iterator[httpx.Client]:
    """Logged in, once all that was told is recorded."""
    expected = sum(value for (name, *_), value in told.items() if name == "tierscope_tier_entered_tokens_total")

    def entered() -> int:
        return sum(row.value for row in buckets(stack, metric="entered_tokens", resolution=10))

    stack.wait_until(lambda: entered() == expected, "all is recorded", 40)
    with closing(logged_in(stack)) as browser:
        yield browser


def test_the_workload_moves_tokens_every_way(truth: Counter[Flow]) -> None:
    ways = {("computed", "gpu"), ("cpu", "gpu"), ("disk", "gpu"), ("gpu", "cpu"), ("cpu", "disk"), ("disk", "dropped")}
    assert truth.keys() >= ways


def test_the_metrics_say_what_moved(told: dict[tuple[str, str, str], float], truth: Counter[Flow]) -> None:
    entered = {(o, t): v for (name, t, o), v in told.items() if name == "tierscope_tier_entered_tokens_total"}
    left = {(t, to): v for (name, t, to), v in told.items() if name == "tierscope_tier_left_tokens_total"}
    ends = {way: tokens for way, tokens in left.items() if way[1] in ("freed", "dropped")}
    assert +Counter(entered) + +Counter(ends) == truth
    for tier in TIERS:
        there = sum(v for (_, to), v in entered.items() if to == tier) - sum(
            v for (t, _), v in left.items() if t == tier
        )
        assert there == told["tierscope_tier_resident_tokens", tier, ""]


def test_loads_stores_and_their_histogram_are_what_moved(
    told: dict[tuple[str, str, str], float], truth: Counter[Flow]
) -> None:
    for tier, above, block_bytes in (("cpu", "gpu", BLOCK_BYTES), ("disk", "cpu", FILE_BYTES)):
        loaded, stored = truth[tier, "gpu"] // BLOCK_SIZE, truth[above, tier] // BLOCK_SIZE
        assert told["tierscope_tier_loaded_blocks_total", tier, ""] == loaded
        assert told["tierscope_tier_load_seconds_bucket", tier, "+Inf"] == loaded
        assert told["tierscope_tier_loaded_bytes_total", tier, ""] == loaded * block_bytes
        assert told["tierscope_tier_stored_blocks_total", tier, ""] == stored
        assert told["tierscope_tier_stored_bytes_total", tier, ""] == stored * block_bytes


def test_the_stored_series_say_it_at_every_resolution(
    page: httpx.Client, stack: Stack, truth: Counter[Flow], told: dict[tuple[str, str, str], float]
) -> None:
    found: dict[int, Counter[tuple[str, str, str]]] = defaultdict(Counter)
    for row in buckets(stack):
        found[row.resolution][row.metric, row.cache_tier, row.detail] += row.value
    for sums in found.values():
        moved = {(detail, tier): value for (metric, tier, detail), value in sums.items() if metric == "entered_tokens"}
        ends = {
            (tier, detail): value
            for (metric, tier, detail), value in sums.items()
            if metric == "left_tokens" and detail in ("freed", "dropped")
        }
        assert +Counter(moved) + +Counter(ends) == truth
        for tier in ("cpu", "disk"):
            seconds = told["tierscope_tier_load_seconds_sum", tier, ""]
            assert sums["load_microseconds", tier, ""] == round(seconds * 1_000_000)
        assert sums["prefill_tokens", "", ""] == told["tierscope_prefill_tokens_total", "", ""]
    assert sorted(found) == [10, 60, 3600, 86400]


def test_the_sankey_its_table_and_the_cards_say_it(page: httpx.Client, truth: Counter[Flow]) -> None:
    answer = page.get("/api/tiers.json?range=1h").raise_for_status().json()
    (sankey,) = answer["flows"]["figure"]["data"]
    names = [label.split(":")[0] for label in sankey["node"]["label"]]
    link = sankey["link"]
    drawn = {
        (names[source], names[target]): value
        for source, target, value in zip(link["source"], link["target"], link["value"], strict=True)
    }
    assert drawn == truth
    assert [row["tokens"] for row in answer["flows"]["rows"]] == link["value"]
    for card in answer["cards"]:
        facts = {fact["name"]: fact["more"] for fact in card["facts"]}
        if card["tier"] in ("cpu", "disk"):
            assert facts["Prompt work saved"] == f"{truth[card['tier'], 'gpu']:,} hit tokens"
            loaded = re.match(r"([\d,]+) blocks", facts["Loaded"])
            assert loaded
            assert int(loaded[1].replace(",", "")) == truth[card["tier"], "gpu"] // BLOCK_SIZE


def test_the_chart_of_bytes_adds_up_to_what_was_copied(page: httpx.Client, stack: Stack, truth: Counter[Flow]) -> None:
    expected = {
        "cpu loaded": truth["cpu", "gpu"] // BLOCK_SIZE * BLOCK_BYTES,
        "cpu stored": truth["gpu", "cpu"] // BLOCK_SIZE * BLOCK_BYTES,
        "disk loaded": truth["disk", "gpu"] // BLOCK_SIZE * FILE_BYTES,
        "disk stored": truth["cpu", "disk"] // BLOCK_SIZE * FILE_BYTES,
    }

    def drawn() -> dict[str, int]:
        """A rate is of the seconds that a step has lasted so far: exact again once the last step has ended."""
        answer = page.get("/api/charts/bandwidth.json?range=1h").raise_for_status().json()
        step = answer["step_seconds"]
        return {
            trace["name"]: round(sum((y or 0) * step for y in trace["y"]))
            for trace in answer["figure"]["data"]
            if not trace.get("meta")
        }

    stack.wait_until(lambda: drawn() == expected, f"the chart adds up to {expected}", 90)


def test_a_tenant_at_its_share_pays_with_its_own_blocks_and_every_page_says_so(
    page: httpx.Client, stack: Stack
) -> None:
    """The last of this file: it adds traffic of its own."""
    ((setting,),) = rows(stack, "SELECT id FROM dashboard_tiersetting WHERE cache_tier = 'gpu'")
    said = change(page, f"/admin/dashboard/tiersetting/{setting}/change/", tenant_quota=f"{int(SHARE) / 100}")
    assert "The engine applies it within two seconds." in said
    stack.wait_until(lambda: f"a tenant at most {SHARE} %" in _tiers(page)["gpu"], "the share is applied")
    keys = {name: stack.manage("createapikey", name, "--tenant", name) for name in ("acme", "umbrella")}

    kept = _ask(stack, keys["umbrella"], 1)
    flood = [_ask(stack, keys["acme"], 10 + number) for number in range(4)]
    again = _ask(stack, keys["umbrella"], 1)

    assert [kept["gpu"], *(hits["gpu"] for hits in flood), again["gpu"]] == [0, 0, 0, 0, 0, 4 * BLOCK_SIZE]
    resident = 'tierscope_tenant_resident_tokens{cache_tier="gpu"', 'tenant="acme"'
    stack.wait_until(lambda: _metric(stack, *resident) == 5 * BLOCK_SIZE, "acme has 5 of 20 blocks")

    def left() -> float:
        """Asked each time: acme has 5 blocks from its second prompt on, and what is published may be a second old."""
        return _metric(stack, 'tierscope_tier_evicted_blocks_total{cache_tier="gpu"', 'reason="quota"')

    stack.wait_until(lambda: left() >= 11, "of acme's 16 blocks")
    stack.wait_until(lambda: f"{left():,.0f} quota" in _evicted(page), "the Tiers page says as many", 40)


SHARE = "25"  # percent, of gpu's 21 blocks


def _ask(stack: Stack, key: str, first: int) -> dict[str, int]:
    """Four full blocks and one token. Hit tokens by tier."""
    prompt = [*(1000 + first * 100 + number for number in range(4 * BLOCK_SIZE)), 7]
    client = stack.openai().with_options(api_key=key)
    answer = client.completions.create(
        model="SmolLM2-135M-Instruct", prompt=prompt, max_tokens=1, temperature=0
    ).model_dump()
    time.sleep(0.1)  # the copies that it started have ended
    hits: dict[str, int] = answer["usage"]["tierscope"]["hit_tokens"]
    return hits


def _metric(stack: Stack, start: str, part: str) -> float:
    """0 before its first is published."""
    lines = (line for line in stack.metrics().splitlines() if line.startswith(start) and part in line)
    return float(next(lines, "0").rpartition(" ")[2])


def _tiers(page: httpx.Client) -> dict[str, str]:
    """How each is configured, in words."""
    (engine,) = page.get("/api/tiers.json?range=1h").raise_for_status().json()["engines"]
    return {each["tier"]: each["modes_text"] for each in engine["tiers"]}


def _evicted(page: httpx.Client) -> str:
    cards = page.get("/api/tiers.json?range=1h").raise_for_status().json()["cards"]
    facts = next(card["facts"] for card in cards if card["tier"] == "gpu")
    return next(str(fact["more"]) for fact in facts if fact["name"] == "Evicted")
