"""What an engine does not tell of its prompt tokens stays unknown from the text to the page: no zero, no rate."""

from pathlib import Path

import pytest
from django.test import Client

from dashboard import valkey
from dashboard.models import Series, Source
from dashboard.services.recording import record
from tests.dashboard.told import moment, stored, telling

pytestmark = pytest.mark.usefixtures("valkey", "db")

START = 1_790_000_000
PERIOD = {"start": START - 300, "end": START + 300}
LMCACHE = (Path(__file__).parent / "expositions/lmcache-0.5.6-mp-built.txt").read_text()
VLLM = (Path(__file__).parent / "expositions/vllm-0.32.0-multitier-edited.txt").read_text()
KVBM = (Path(__file__).parent / "expositions/kvbm-built.txt").read_text()
ASKED = "lmcache_mp_lookup_requested_tokens_total{"


def watched(kind: str, *texts: str) -> Source:
    """Read every ten seconds; the first text is the baseline."""
    source = Source.objects.create(name="prod", kind=kind, url="http://prod/metrics")
    for number, text in enumerate(texts):
        now = moment(START + 10 * number)
        Source.objects.filter(pk=source.pk).update(due_at=now)
        assert record(source.pk, now=now, connection=valkey.client(), fetch_text=telling(text))
    return source


def doubled(text: str) -> str:
    lines = [line.rpartition(" ") for line in text.splitlines()]
    return "".join(
        f"{name} {2 * float(value)}\n" if "_total{" in name else f"{name} {value}\n" for name, _, value in lines
    )


def test_an_engine_that_cannot_know_what_was_computed_has_no_series_of_it(admin: Client) -> None:
    """LMCache's server does not see hits in the gpu."""
    watched("auto", LMCACHE, doubled(LMCACHE))
    assert stored(86400)["prompt_tokens", ""] > sum(
        stored(86400)["hit_tokens", tier] for tier in ("cpu", "unattributed")
    )
    assert not Series.objects.filter(metric=Series.Metric.COMPUTED_TOKENS).exists()
    tiles = {tile["key"]: tile for tile in admin.get("/api/tiles.json", PERIOD).json()["tiles"]}
    assert tiles["computed_tokens"]["value"] == "–"
    file = admin.get("/api/charts/fleet.csv", PERIOD).content.decode().splitlines()
    cells = dict(zip(file[0].split(","), file[1].split(","), strict=True))
    assert (cells["computed_tokens"], cells["cpu_hit_tokens"] != "") == ("", True)
    chart = admin.get("/api/charts/tokens.json", PERIOD).json()["figure"]
    assert [trace["name"] for trace in chart["data"]] == ["cpu", "unattributed"]
    steps = admin.get("/api/charts/tokens.csv", PERIOD).content.decode().splitlines()
    assert all(line.endswith(",") for line in steps[1:]), "the last column is computed_tokens"


def test_an_engine_that_tells_prompt_tokens_and_no_hits_has_no_hit_rate(admin: Client) -> None:
    lines = "".join(f"{line}\n" for line in LMCACHE.splitlines() if line.startswith(ASKED))
    watched("lmcache_mp", lines, doubled(lines))
    assert stored(86400).keys() == {("prompt_tokens", "")}
    tiles = {tile["key"]: tile for tile in admin.get("/api/tiles.json", PERIOD).json()["tiles"]}
    assert (tiles["hit_rate"]["value"], tiles["computed_tokens"]["value"]) == ("–", "–")


def test_counts_that_no_engine_tells_are_null_in_the_totals(admin: Client) -> None:
    watched("auto", LMCACHE, doubled(LMCACHE))
    told = admin.get("/api/v1/totals", {"from": START - 300, "to": START + 300}).json()
    untold = {name: told[name] for name in ("computed_tokens", "generated_tokens", "requests", "preemptions")}
    assert untold == dict.fromkeys(untold)
    assert told["prompt_tokens"] > 0


def test_prompt_tokens_that_are_not_told_are_no_zero(admin: Client) -> None:
    """Most builds of KVBM tell what was hit and not what was asked for."""
    watched("kvbm", KVBM, KVBM.replace(" 128000", " 256000"))
    told = admin.get("/api/v1/totals", {"from": START - 300, "to": START + 300}).json()
    assert (told["prompt_tokens"], told["hit_tokens"]) == (None, {"unattributed": 128_000})
    answer = admin.get("/api/tiles.json", PERIOD).json()
    assert next(tile for tile in answer["tiles"] if tile["key"] == "prompt_tokens")["value"] == "–"


def test_a_comparison_has_a_dash_for_what_one_side_does_not_tell(admin: Client) -> None:
    watched("auto", LMCACHE, doubled(LMCACHE))
    query = f"start={PERIOD['start']}&end={PERIOD['end']}&engine=prod&against=before"
    rows = admin.get(f"/api/compare.json?{query}").json()["rows"]
    assert next(row for row in rows if row["name"] == "Generated tokens")["cells"][0]["text"] == "–"
    file = admin.get(f"/api/charts/compare.csv?{query}").content.decode()
    assert "generated_tokens,,\r\n" in file


def test_prompt_tokens_of_which_neither_is_told_are_a_part_of_their_own(admin: Client) -> None:
    watched("auto", LMCACHE, doubled(LMCACHE))
    answer = admin.get("/api/tiles.json", PERIOD).json()
    parts = {part["origin"]: part["tokens"] for part in answer["origins"]}
    assert parts["untold"] == answer["prompt_tokens"] - parts["cpu"] - parts["unattributed"]
    assert answer["origins"][-1]["label"] == "not told"
    row = admin.get("/api/fleet.json", PERIOD).json()["rows"][0]
    assert {part["origin"]: part["tokens"] for part in row["origins"]} == parts


def test_another_tierscopes_engine_without_computed_tokens_has_none_here_either() -> None:
    """It re-exports what its engines tell: of LMCache's server it does not know what was computed."""
    told = """tierscope_prompt_tokens_total{engine="lmc",model_name="m"} 100
tierscope_cached_prompt_tokens_total{engine="lmc",model_name="m",cache_tier="cpu"} 40
"""
    watched("tierscope", told, doubled(told))
    assert stored(86400) == {("prompt_tokens", ""): 100, ("hit_tokens", "cpu"): 40}


def test_a_tier_that_is_told_and_had_no_hits_is_zero_in_totals_and_files(admin: Client) -> None:
    watched("auto", VLLM, VLLM.replace(" 9930.0", " 9940.0"))
    told = admin.get("/api/v1/totals", {"from": START - 300, "to": START + 300}).json()
    assert told["hit_tokens"] == dict.fromkeys(("gpu", "cpu", "disk", "remote", "unattributed"), 0)
    query = f"start={PERIOD['start']}&end={PERIOD['end']}&engine=prod/0&against=before"
    file = admin.get(f"/api/charts/compare.csv?{query}").content.decode()
    assert "disk_hit_tokens,0,\r\n" in file
