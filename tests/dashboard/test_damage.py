"""A row that is damaged, or left behind, is an outcome of what it belongs to, told with its place; the rest goes on."""

import pytest
from django.utils import timezone

from dashboard import valkey
from dashboard.chunks import Buckets
from dashboard.chunks import unpack as unpack_chunk
from dashboard.counters import CountersError, unpack
from dashboard.models import Alert, AlertRule, Chunk, EngineRun, Resolution, Source, TotalChunk
from dashboard.selectors import runs
from dashboard.selectors.alert_conditions import findings
from dashboard.selectors.source_states import describe
from dashboard.services import chunks
from dashboard.services.alerts import ensure_rules, evaluate
from dashboard.services.integrity import check
from dashboard.services.recording import record_many
from dashboard.services.removal import go_on, remove_sources
from dashboard.sources.target import Target
from tests.dashboard.amounts import AmountStore
from tests.dashboard.seeded import Metric, SeededEngine
from tests.dashboard.told import Engine, moment
from tests.stored import rows

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("valkey")]

NOW = 1_800_000_000  # a whole hour
NAMES = ("a", "b", "c", "d", "e")


def _slow_engines() -> None:
    """All hits of each come from disk."""
    for name in NAMES:
        engine = SeededEngine(name, source_name=name)
        for at in range(NOW - 1_800, NOW, 60):
            engine.add(at, Metric.HIT_TOKENS, 10, tier="disk")
            engine.add(at, Metric.UP, 0, tier="remote")
        engine.store(NOW)
    chunks.settle(now=moment(NOW + 3_600))


def _damage(engine: str) -> None:
    Chunk.objects.filter(series__engine=engine, resolution=Resolution.MINUTE).update(packed=b"torn")


def test_alerts_leave_out_the_source_that_cannot_be_read_and_say_which(caplog: pytest.LogCaptureFixture) -> None:
    _slow_engines()
    _damage("c")
    for kind in ("slow_tier", "remote_down"):
        caplog.clear()
        unread: set[int] = set()
        found = findings(kind, 0.5, NOW, unread)
        assert sorted(each.labels["engine"] for each in found) == ["a", "b", "d", "e"]
        assert unread == {Source.objects.get(name="c").pk}
        assert "c is left out of alerts. A row of dashboard_chunk cannot be read" in caplog.text


def test_an_alert_of_a_source_that_cannot_be_read_is_not_over() -> None:
    _slow_engines()
    ensure_rules()
    AlertRule.objects.filter(kind="slow_tier").update(for_minutes=0, threshold=0.5)
    evaluate(moment(NOW))
    evaluate(moment(NOW))
    alerts = Alert.objects.filter(rule__kind="slow_tier")
    assert set(alerts.values_list("state", flat=True)) == {"firing"}
    _damage("c")
    Chunk.objects.filter(series__engine="d").delete()
    evaluate(moment(NOW))
    states = {alert.labels["engine"]: alert.state for alert in alerts}
    assert states == {"a": "firing", "b": "firing", "c": "firing", "d": "resolved", "e": "firing"}


@pytest.mark.parametrize("packed", [b"1234567", b"12345678"])
def test_counters_that_are_torn_are_refused(packed: bytes) -> None:
    with pytest.raises(CountersError, match="are not pairs of 16"):
        unpack(packed)


def test_counters_that_cannot_be_read_are_an_outcome_of_their_source_and_nothing_is_counted_twice() -> None:
    engines = {name: Engine(name) for name in NAMES}
    for name in NAMES:
        Source.objects.create(name=name, kind="auto", url=f"http://{name}/metrics", due_at=moment(NOW))

    def look(seconds: int) -> list[int]:
        Source.objects.update(due_at=moment(seconds))
        ids = list(Source.objects.values_list("pk", flat=True))

        def fetch(target: Target) -> str:
            return engines[target.url.split("/")[2]].text()

        return record_many(ids, clock=lambda: moment(seconds), connection=valkey.client(), fetch_text=fetch)

    look(NOW)
    for engine in engines.values():
        engine.serve({"gpu": 10}, computed=5)
    EngineRun.objects.filter(source__name="c").update(counters=b"torn")
    assert len(look(NOW + 10)) == len(NAMES) - 1
    told = Source.objects.get(name="c")
    assert "What the counters of c/c stood at cannot be read (4 bytes are not pairs of 16)" in told.last_error
    assert f"remove row {EngineRun.objects.get(source=told).pk} of dashboard_enginerun" in told.last_error
    assert told.due_at == moment(NOW + 20), "it is looked at again"
    EngineRun.objects.filter(source=told).delete()
    assert len(look(NOW + 20)) == len(NAMES)
    booked = rows(resolution=10, metric="prompt_tokens")
    sums = {name: sum(row.value for row in booked if row.engine == f"{name}/{name}") for name in NAMES}
    assert sums == {"a": 15, "b": 15, "c": 0, "d": 15, "e": 15}


def test_the_store_is_verified_with_one_look_at_every_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    amounts = AmountStore()
    for engine in NAMES:
        amounts.add(("prompt_tokens", "", ""), NOW, 5, engine)
    chunks.settle(now=moment(NOW + 86_400))
    looks: list[bytes] = []

    def unpacked(packed: bytes) -> Buckets:
        looks.append(packed)
        return unpack_chunk(packed)

    monkeypatch.setattr(runs, "unpack", unpacked)
    check(now=moment(NOW + 86_400))
    assert len(looks) == Chunk.objects.count() + TotalChunk.objects.count()


def test_a_source_that_cannot_be_taken_from_the_totals_stays_and_says_why_and_others_go() -> None:
    _slow_engines()
    chunk = Chunk.objects.filter(series__engine="b", series__metric="hit_tokens", resolution=Resolution.HOUR)
    chunk.update(packed=b"torn")
    wanted = Source.objects.filter(name__in=["a", "b", "c"])
    remove_sources(wanted, clock=timezone.now, seconds=60)
    (left,) = wanted.all()
    assert Source.objects.count() == 3
    assert list(left.series.values_list("metric", flat=True)) == ["hit_tokens"], "all else is gone"
    told = describe(left, timezone.now())
    assert told.startswith("It is being removed, with its numbers. A row of dashboard_chunk cannot be read")
    chunk.delete()
    assert go_on(clock=timezone.now, seconds=60) == 1
    assert not wanted.all().exists()
