"""Alerts come, fire and end: state by state, and on the page."""

import pytest
from django.test import Client

from dashboard.models import Alert, AlertRule, Source
from dashboard.services.alerts import KEPT, ensure_rules, evaluate, expire
from dashboard.tasks import evaluate_alerts
from tests.dashboard.alerting import at, fail, recover, stale_source

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("valkey")]


@pytest.fixture
def source() -> Source:
    return stale_source()


def states() -> list[str]:
    return list(Alert.objects.order_by("pk").values_list("state", flat=True))


def test_a_condition_is_pending_until_it_held_long_enough_then_fires_then_is_over(source: Source) -> None:
    assert evaluate(at(0)) == []
    assert evaluate(at(4.5)) == []
    assert states() == ["pending"]
    (fired,) = evaluate(at(5))
    assert (fired.state, fired.firing_at, fired.summary) == (
        "firing",
        at(5),
        "gpu-7 could not be read lately: its numbers are old.",
    )
    assert evaluate(at(6)) == []
    recover(source, at(7))
    (over,) = evaluate(at(7))
    assert (over.pk, over.state, over.pending_at, over.resolved_at) == (fired.pk, "resolved", at(0), at(7))
    assert evaluate(at(8)) == []


def test_a_pending_one_that_ends_leaves_nothing_and_begins_anew(source: Source) -> None:
    evaluate(at(0))
    recover(source, at(1))
    evaluate(at(1))
    assert states() == []
    fail(source, at(3))
    evaluate(at(3))
    evaluate(at(6))
    assert states() == ["pending"]


def test_the_same_alert_may_come_again(source: Source) -> None:
    for start in (0, 60):
        fail(source, at(start))
        evaluate(at(start))
        evaluate(at(start + 5))
        recover(source, at(start + 6))
        evaluate(at(start + 6))
    assert states() == ["resolved", "resolved"]
    assert len({alert.fingerprint for alert in Alert.objects.all()}) == 1


def test_a_rule_that_is_switched_off_watches_for_nothing_and_ends_what_fires(source: Source) -> None:
    evaluate(at(0))
    evaluate(at(5))
    AlertRule.objects.update(is_enabled=False)
    assert [alert.state for alert in evaluate(at(6))] == ["resolved"]
    assert evaluate(at(20)) == []


def test_without_patience_it_fires_at_once(source: Source) -> None:
    ensure_rules()
    AlertRule.objects.update(for_minutes=0)
    assert [alert.state for alert in evaluate(at(0))] == ["firing"]


def test_what_is_over_is_forgotten_after_a_month(source: Source) -> None:
    evaluate(at(0))
    evaluate(at(5))
    recover(source, at(6))
    evaluate(at(6))
    expire(at(6) + KEPT)
    assert states() == ["resolved"]
    expire(at(7) + KEPT)
    assert states() == []


def test_the_task_looks_and_tells(monkeypatch: pytest.MonkeyPatch, source: Source) -> None:
    asked: list[str] = []
    monkeypatch.setattr("dashboard.tasks.tell_webhooks.delay", lambda: asked.append("told"))
    assert evaluate_alerts() == 0
    AlertRule.objects.update(for_minutes=0)
    assert evaluate_alerts() == 1
    assert asked == ["told"]


def test_the_page_lists_what_fires_and_the_header_of_every_page_counts_it(admin: Client, source: Source) -> None:
    assert 'id="firing" hidden' in admin.get("/").content.decode()
    evaluate(at(0))
    evaluate(at(5))
    (active,) = admin.get("/api/alerts.json").json()["active"]
    assert active["summary"] == "gpu-7 could not be read lately: its numbers are old."
    assert (active["state"], active["runbook"]) == ("firing", "docs/runbook.md#source-stale")
    assert "TierscopeHitRateFell" in admin.get("/alerts/").content.decode()
    for path in ("/", "/tiers/", "/requests/", "/chat/"):
        assert '<span data-count>1</span><span class="visually-hidden"> firing' in admin.get(path).content.decode()
    assert admin.get("/api/tiles.json").json()["num_firing"] == 1
    recover(source, at(6))
    evaluate(at(6))
    told = admin.get("/api/alerts.json").json()
    assert (told["active"], [each["summary"] for each in told["resolved"]], told["num_firing"]) == (
        [],
        [active["summary"]],
        0,
    )


def test_thresholds_are_changed_in_the_admin_within_their_bounds(admin: Client) -> None:
    assert admin.get("/admin/dashboard/alertrule/").status_code == 200
    rule = AlertRule.objects.get(kind="slow_tier")
    address = f"/admin/dashboard/alertrule/{rule.pk}/change/"
    assert "1.5" in admin.post(address, {"threshold": "1.5", "for_minutes": "10"}).content.decode()
    admin.post(address, {"threshold": "0.8", "for_minutes": "10"})
    rule.refresh_from_db()
    assert (rule.threshold, rule.for_minutes, rule.is_enabled) == (0.8, 10, False)
    stale = AlertRule.objects.get(kind="source_stale")
    assert "threshold" not in admin.get(f"/admin/dashboard/alertrule/{stale.pk}/change/").content.decode()
