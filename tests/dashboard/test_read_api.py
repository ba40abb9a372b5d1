"""/api/v1: exact integers with their units for whoever has a read token; everything else is one sentence."""

import re
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client

from dashboard.models import ReadToken, Retention, Series, Source, TierChange, TierSetting
from dashboard.selectors import series_values
from dashboard.selectors.metric_facts import METRIC_FACTS
from dashboard.services.api_keys import create_api_key, create_read_token, find_read_token
from tests.dashboard.live_engine import GIB, publish
from tests.dashboard.seeded import MODEL, SeededEngine
from tests.stored import rows

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("valkey")]


class Program:
    """Somebody with a read token and no session."""

    def __init__(self) -> None:
        self.row, token = create_read_token("grafana")
        self.headers = {"Authorization": f"Bearer {token}"}

    def get(self, path: str, status: int = 200, **headers: str) -> Any:
        response = Client().get(f"/api/v1/{path}", headers=self.headers | headers)
        assert response.status_code == status, response.content
        return response

    def json(self, path: str) -> Any:
        return self.get(path).json()

    def refusal(self, path: str) -> str:
        """The sentence of a 400."""
        error = self.get(path, 400).json()["error"]
        assert set(error) == {"message", "type", "param", "code"}
        return str(error["message"])


@pytest.fixture
def program(db: None) -> Program:
    return Program()


@pytest.fixture
def now() -> float:
    return time.time()


@pytest.fixture
def seeded(now: float) -> SeededEngine:
    engine = SeededEngine()
    for age in range(300, 0, -10):
        engine.scrape(now - age, {"gpu": 640}, {"gpu": 2080})
    engine.request(now - 200, {"gpu": 64, "disk": 32}, 20, ttft=0.15, tenant="acme")
    engine.request(now - 100, {"gpu": 16, "disk": 0}, 50, ttft=0.4)
    engine.store(now)
    return engine


def sums(told: Any, *names: str) -> dict[tuple[str | None, ...], int]:
    return {tuple(each[name] for name in names): sum(each["values"]) for each in _without_gaps(told["series"])}


def _without_gaps(series: list[Any]) -> list[Any]:
    return [each | {"values": [value for value in each["values"] if value is not None]} for each in series]


@pytest.mark.usefixtures("seeded")
def test_a_metric_is_told_by_tier_in_exact_integers_with_unit_and_resolution(program: Program) -> None:
    told = program.json("series?metric=hit_tokens&range=15m")
    assert (told["unit"], told["kind"], told["step_seconds"], told["resolution_seconds"]) == (
        "tokens",
        "counter",
        10,
        10,
    )
    assert sums(told, "tier") == {("gpu",): 80, ("disk",): 32}
    assert all(len(each["values"]) == (told["to"] - told["from"]) / 10 for each in told["series"])
    assert {type(value) for each in told["series"] for value in each["values"]} == {int, type(None)}


@pytest.mark.usefixtures("seeded")
def test_every_step_says_the_same_sum(program: Program) -> None:
    for step in (10, 60, 300, 3600, 86400):
        told = program.json(f"series?metric=prompt_tokens&range=15m&step={step}")
        assert (told["step_seconds"], sums(told, "tier")) == (step, {("",): 182})


@pytest.mark.usefixtures("seeded")
def test_engines_and_models_are_told_apart_where_that_is_asked_for(program: Program, now: float) -> None:
    other = SeededEngine(engine="gpu-7/0", model_name="other", source_name="gpu-7")
    other.scrape(now - 50, {}, {})
    other.add(now - 50, "prompt_tokens", 1_000)
    other.store(now)
    told = program.json("series?metric=prompt_tokens&range=15m&by=engine,model")
    assert sums(told, "engine", "model", "tier") == {("local", MODEL, None): 182, ("gpu-7/0", "other", None): 1_000}
    assert sums(program.json("series?metric=prompt_tokens&range=15m&by="), "engine") == {(None,): 1_182}
    one = program.json("series?metric=prompt_tokens&range=15m&engine=gpu-7/0")
    assert sums(one, "tier") == {("",): 1_000}
    assert sum(value is not None for value in one["series"][0]["values"]) == 1


@pytest.mark.usefixtures("seeded")
def test_tenants_are_a_filter_of_their_own(program: Program) -> None:
    told = program.json("series?metric=tenant_hit_tokens&tenant=acme&range=15m")
    assert (told["detail_name"], sums(told, "tier", "detail")) == (
        "tenant",
        {("gpu", "acme"): 64, ("disk", "acme"): 32},
    )


@pytest.mark.usefixtures("seeded")
def test_a_gauge_is_the_mean_of_what_was_read(program: Program) -> None:
    told = program.json("series?metric=resident_tokens&range=5m&step=60")
    assert told["kind"] == "gauge"
    assert {value for value in told["series"][0]["values"] if value is not None} == {640}


@pytest.mark.usefixtures("seeded")
@pytest.mark.parametrize("metric", METRIC_FACTS)
def test_every_metric_can_be_read(program: Program, metric: str) -> None:
    assert program.json(f"series?metric={metric}&range=5m")["unit"]


def test_what_is_said_of_metrics_leaves_none_out() -> None:
    assert set(METRIC_FACTS) == set(Series.Metric.values)


@pytest.mark.usefixtures("seeded")
def test_totals_are_the_page_s(program: Program) -> None:
    told = program.json("totals?range=15m")
    assert (told["prompt_tokens"], told["computed_tokens"], told["requests"]) == (182, 70, 2)
    assert (told["hit_tokens"], told["hit_rate"]) == ({"gpu": 80, "disk": 32}, 112 / 182)


@pytest.mark.usefixtures("seeded")
def test_sources_and_engines_are_listed_page_by_page_with_their_states(program: Program) -> None:
    Source.objects.create(name="gpu-7", kind="vllm", url="http://gpu-7:8000/metrics", token="s3cret", is_enabled=False)
    first = program.json("sources?limit=1")
    second = program.json(f"sources?limit=1&offset={first['next_offset']}")
    assert [(row["name"], row["state"]) for row in first["sources"] + second["sources"]] == [
        ("embedded", "up"),
        ("gpu-7", "off"),
    ]
    assert second["next_offset"] is None
    assert "s3cret" not in str(second)
    assert program.json("engines")["engines"] == [
        {"engine": "local", "model_name": MODEL, "source": "embedded", "kind": "embedded", "state": "offline"}
    ]
    publish("local")
    assert program.json("engines")["engines"][0]["state"] == "ready"


def test_sizes_are_desired_applied_and_used(program: Program, now: float) -> None:
    TierSetting.objects.create(
        engine="local", cache_tier="cpu", desired_bytes=2 * GIB, applied_bytes=GIB, reason="Full."
    )
    publish("local", cpu={})
    watched = SeededEngine(engine="gpu-7/0", source_name="gpu-7")
    watched.scrape(now, {"gpu": 640}, {"gpu": 2080})
    watched.store(now)
    ours, theirs = sorted(program.json("sizes")["sizes"], key=lambda row: row["engine"] != "local")
    assert [ours[f"{name}_bytes"] for name in ("desired", "applied", "used")] == [2 * GIB, GIB, GIB // 4]
    assert (ours["reason"], ours["policy"], ours["capacity_tokens"]) == ("Full.", "lru", GIB // 737_280 * 16)
    modes = ("write_mode", "store_after_hits", "load", "tenant_quota")
    assert [ours[name] for name in modes] == ["write_back", 2, "always", 1.0]
    assert [theirs[name] for name in modes] == [None] * 4
    assert (theirs["desired_bytes"], theirs["applied_bytes"], theirs["resident_tokens"]) == (None, 46_080 * 2080, 640)
    assert [row["engine"] for row in program.json("sizes?engine=gpu-7/0")["sizes"]] == ["gpu-7/0"]


def test_changes_of_sizes_are_told_newest_first(program: Program) -> None:
    at = datetime(2026, 1, 2, tzinfo=UTC)
    for number in range(3):
        changed = {"engine": "local", "cache_tier": "cpu", "action": "resize", "new_value": str(number)}
        TierChange.objects.create(**changed, at=at + timedelta(days=number))
    told = program.json("sizes/history?limit=2")
    assert [row["new_value"] for row in told["changes"]] == ["2", "1"]
    assert [row["new_value"] for row in program.json("sizes/history?offset=2")["changes"]] == ["0"]
    assert [row["at"] for row in program.json("sizes/history?from=2026-01-02&to=2026-01-03")["changes"]] == [
        "2026-01-02T00:00:00Z"
    ]


def test_the_document_is_generated_and_says_what_each_field_counts() -> None:
    told = Client().get("/api/v1/openapi.json").json()
    assert set(told["paths"]) >= {f"/api/v1/{name}" for name in ("sources", "engines", "series", "sizes", "totals")}
    schemas = told["components"]["schemas"]
    assert "unit" in schemas["OneSeries"]["properties"]["values"]["description"]
    for name in ("Totals", "SizeTold", "SeriesTold", "SourceTold"):
        numbers = [field for key, field in schemas[name]["properties"].items() if "tokens" in key or "bytes" in key]
        assert all(field["description"] for field in numbers)
    for address in told["paths"].values():
        assert address["get"]["security"] == [{"TokenOrSession": []}]
        assert "Refusal" in str(address["get"]["responses"]["400"])
    assert told["components"]["securitySchemes"]["TokenOrSession"] == {"type": "http", "scheme": "bearer"}
    asked = {each["name"] for each in told["paths"]["/api/v1/series"]["get"]["parameters"]}
    assert asked == {"metric", "tier", "tenant", "detail", "by", "step", "engine", "model", "range", "from", "to"}


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("series", "“metric” is missing."),
        ("series?metric=pie", "There is no metric “pie”; there are scrapes, "),
        ("series?metric=prompt_tokens&engien=a", "There is no parameter “engien” here; expected by, detail, engine,"),
        ("series?metric=prompt_tokens&engine=a&engine=b", "engine is there 2 times; expected once."),
        ("series?metric=prompt_tokens&tenant=a", "prompt_tokens is not told by tenant"),
        ("series?metric=prompt_tokens&by=tier,pod", "by names “pod”; expected some of engine, model, tier, detail"),
        ("series?metric=prompt_tokens&step=15", "A step of 15 s cannot be read"),
        ("series?metric=prompt_tokens&step=x", "“step” is not acceptable"),
        ("series?metric=prompt_tokens&from=1&to=2", "to has to be at least one minute after from."),
        ("series?metric=prompt_tokens&from=x&to=2", "from is “x”, but it has to be a time"),
        ("series?metric=prompt_tokens&from=1", "from and to belong together"),
        ("series?metric=prompt_tokens&range=30d&step=10", "259,20"),
        ("series?metric=prompt_tokens&engine=%00", "engine is not a name"),
        ("series?metric=hit_tokens&tier=%00", "tier has to be printable characters."),
        ("series?metric=requests&detail=%00", "detail has to be printable characters."),
        ("series?metric=tenant_prompt_tokens&tenant=%00", "tenant is not a name: at most 200 printable characters."),
        ("totals?range=2h", "range is “2h”"),
        ("totals?step=60", "There is no parameter “step” here"),
        ("sources?limit=0", "“limit” is not acceptable"),
        ("sources?limit=5000", "“limit” is not acceptable"),
        ("sizes?range=1h", "There is no parameter “range” here"),
    ],
)
def test_a_wrong_question_is_400_and_one_sentence(program: Program, path: str, sentence: str) -> None:
    assert program.refusal(path).startswith(sentence)


def test_buckets_that_are_not_kept_any_more_are_refused_with_what_is(program: Program, now: float) -> None:
    Retention.objects.create(ten_seconds_hours=24)
    start, end = int(now) - 3 * 86_400, int(now) - 3 * 86_400 + 600
    said = program.refusal(f"series?metric=prompt_tokens&from={start}&to={end}&step=10")
    assert said.startswith("Buckets of 10 s are kept since 20")
    assert said.endswith("Z only; ask for a step that is a multiple of 60 s.")


@pytest.mark.usefixtures("seeded")
def test_gauges_that_are_summed_are_bounded_by_what_has_to_be_read(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(series_values, "MAX_READ", 10)
    said = program.refusal("series?metric=resident_tokens&by=&range=15m&step=40")
    assert said.startswith("A mean is of each engine first: ")
    assert program.json("series?metric=resident_tokens&by=&range=5m&step=150")["series"]
    assert program.json("series?metric=resident_tokens&by=&range=15m")["series"], "charts' steps have totals"


def test_more_values_than_one_answer_holds_are_refused(program: Program, now: float) -> None:
    source = Source.objects.create(name="many")
    Series.objects.bulk_create(
        Series(source=source, engine=f"e{number}", metric="prompt_tokens") for number in range(50)
    )
    said = program.refusal("series?metric=prompt_tokens&by=engine&range=24h&step=10")
    # One step more where now lies within one.
    assert re.match(
        r"50 series of 8,64[01] steps are more than 200,000 values, the most of one answer; ask for a", said
    )
    assert not rows()


def test_an_unchanged_answer_is_304(program: Program, now: float) -> None:
    path = f"totals?from={int(now) - 7200}&to={int(now) - 3600}"
    first = program.get(path)
    assert first["Cache-Control"] == "private, no-cache"
    assert "Authorization" in first["Vary"]
    assert program.get(path, 304, **{"If-None-Match": first["ETag"]}).content == b""


def test_nothing_can_be_written_and_other_addresses_are_told_in_the_same_shape(program: Program) -> None:
    posted = Client().post("/api/v1/sources", headers=program.headers)
    assert (posted.status_code, posted["Allow"], posted.json()["error"]["code"]) == (
        405,
        "GET, HEAD",
        "method_not_allowed",
    )
    assert program.get("pie", 404).json()["error"]["code"] == "unknown_url"
    assert Client().head("/api/v1/sources", headers=program.headers).status_code == 200


def test_who_may_not_read_is_told_why(client: Client, program: Program) -> None:
    assert client.get("/api/v1/sources").json()["error"]["code"] == "missing_token"
    for wrong, sentence in (("Bearer tsr-x", "unknown or was revoked"), ("Basic x", "has to read “Bearer”")):
        refused = client.get("/api/v1/sources", headers={"Authorization": wrong})
        assert (refused.status_code, refused["WWW-Authenticate"]) == (401, "Bearer")
        assert sentence in refused.json()["error"]["message"]
    _, key = create_api_key("traffic")
    refused = client.get("/api/v1/sources", headers={"Authorization": f"Bearer {key}"})
    assert "This is an API key, which sends traffic" in refused.json()["error"]["message"]
    ReadToken.objects.update(is_active=False)
    program.get("sources", 401)


def test_staff_read_with_their_session_and_others_do_not(client: Client) -> None:
    client.force_login(User.objects.create_user("grace"))
    assert client.get("/api/v1/sources").json()["error"]["code"] == "not_staff"
    client.force_login(User.objects.create_user("ada", is_staff=True))
    assert client.get("/api/v1/sources").status_code == 200


@pytest.mark.parametrize("path", ["/api/v1/sources", "/api/v1", "/v1/models"])
def test_a_foreign_host_name_is_refused_in_the_api_s_shape(path: str, settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["tierscope.example"]
    answer = Client().get(path, headers={"Host": "evil.example"})
    assert (answer.status_code, answer["Content-Type"]) == (400, "application/json")
    error = answer.json()["error"]
    assert error["code"] == "unknown_host"
    assert "TIERSCOPE_ALLOWED_HOSTS" in error["message"]


def test_a_page_refuses_a_foreign_host_name_as_a_page(settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["tierscope.example"]
    answer = Client().get("/login/", headers={"Host": "evil.example"})
    assert (answer.status_code, answer["Content-Type"]) == (400, "text/html; charset=utf-8")


def test_a_read_token_s_use_is_noted(program: Program) -> None:
    program.get("sources")
    program.row.refresh_from_db()
    assert program.row.last_used_at is not None


def test_the_command_prints_a_token_and_refuses_a_taken_name(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("createreadtoken", "notebook")
    assert find_read_token(capsys.readouterr().out.strip()) is not None
    with pytest.raises(CommandError, match="There is a read token named “notebook” already"):
        call_command("createreadtoken", "notebook")


def test_a_token_made_in_the_admin_is_shown_once_and_revoked_there(client: Client) -> None:
    client.force_login(User.objects.create_superuser("ada"))
    page = client.post("/admin/dashboard/readtoken/add/", {"name": "grafana"})
    plain = page.content.decode().partition('value="tsr-')[2].partition('"')[0]
    row = find_read_token(f"tsr-{plain}")
    assert row is not None
    assert "no-store" in page["Cache-Control"]
    assert plain not in client.get(f"/admin/dashboard/readtoken/{row.pk}/change/").content.decode()
    revoke = {"action": "revoke", "_selected_action": row.pk}
    assert "1 token was revoked" in client.post("/admin/dashboard/readtoken/", revoke, follow=True).content.decode()
    assert find_read_token(f"tsr-{plain}") is None
