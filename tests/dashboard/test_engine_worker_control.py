"""The control thread: the rows in the database become the engine's sizes, whether or not the bell was heard."""

import json
import time
from collections.abc import Callable, Iterator

import pytest
from django.utils import timezone

from dashboard import valkey as names
from dashboard.engine_control import Controller
from dashboard.models import TierChange, TierSetting
from dashboard.services.tiers import ensure_settings
from dashboard.tier_modes import modes_of
from tests.e2e.scripted_engine import ScriptedHost

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("valkey")]


@pytest.fixture
def host() -> ScriptedHost:
    host = ScriptedHost("local")
    ensure_settings("local", host.capacities())
    return host


@pytest.fixture
def controller(host: ScriptedHost) -> Controller:
    return Controller(host, names.client)


@pytest.fixture
def running(controller: Controller) -> Iterator[Controller]:
    controller.start()
    yield controller
    controller.stop()


def wish(tier: str, num_bytes: int) -> None:
    TierSetting.objects.filter(cache_tier=tier).update(desired_bytes=num_bytes)


def setting(tier: str) -> TierSetting:
    return TierSetting.objects.get(engine="local", cache_tier=tier)


def wait_until(is_true: Callable[[], bool], seconds: float = 5) -> None:
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_desired_sizes_are_applied_and_written_down(controller: Controller, host: ScriptedHost) -> None:
    wish("cpu", 5000)
    controller.reconcile()

    assert host.sizes == {"gpu": 1000, "cpu": 5000, "disk": 3000}
    assert (setting("cpu").applied_bytes, setting("cpu").reason) == (5000, "")
    assert setting("gpu").applied_bytes == 1000


def test_a_refused_size_keeps_the_old_one_and_says_why(controller: Controller, host: ScriptedHost) -> None:
    wish("disk", 5_000_000)
    controller.reconcile()

    assert host.sizes["disk"] == 3000
    assert (setting("disk").applied_bytes, setting("disk").reason) == (3000, "This machine has 1 MB.")


def test_desired_modes_are_applied_once(controller: Controller, host: ScriptedHost) -> None:
    TierSetting.objects.filter(cache_tier="cpu").update(write_mode="write_selective", store_after_hits=5)
    controller.reconcile()
    assert host.configured["cpu"] == modes_of(setting("cpu"))
    asked: list[str] = []
    host.configure = lambda tier, modes: asked.append(tier) or ""  # type: ignore[method-assign,func-returns-value]
    controller.reconcile()
    assert asked == []


def test_refused_modes_keep_the_old_ones_and_say_why_until_they_can_be(
    controller: Controller, host: ScriptedHost
) -> None:
    controller.reconcile()
    before = host.modes("cpu")
    TierSetting.objects.filter(cache_tier="cpu").update(store_after_hits=0, load="when_cheaper")
    controller.reconcile()
    assert host.modes("cpu") == before
    assert (setting("cpu").applied_bytes, setting("cpu").reason) == (2000, "store_after_hits is 0; expected 1 or more.")
    TierSetting.objects.filter(cache_tier="cpu").update(store_after_hits=1)
    controller.reconcile()
    assert (host.modes("cpu"), setting("cpu").reason) == (modes_of(setting("cpu")), "")


def test_a_size_that_is_no_whole_number_of_blocks_counts_as_applied(controller: Controller, host: ScriptedHost) -> None:
    wish("cpu", 4009)
    controller.reconcile()
    asked: list[str] = []
    host.resize = lambda tier, num_bytes: asked.append(tier) or ""  # type: ignore[method-assign,func-returns-value]
    controller.reconcile()

    assert asked == []
    assert (setting("cpu").applied_bytes, setting("cpu").reason) == (4000, "")


def test_tiers_shrink_before_others_grow(controller: Controller, host: ScriptedHost) -> None:
    asked: list[str] = []
    host.resize = lambda tier, num_bytes: asked.append(tier) or ""  # type: ignore[method-assign,func-returns-value]
    wish("gpu", 9000)
    wish("cpu", 0)
    controller.reconcile()

    assert asked == ["cpu", "gpu"]


def test_what_is_applied_already_is_not_written_again(controller: Controller) -> None:
    controller.reconcile()
    first = setting("gpu").applied_at
    controller.reconcile()

    assert setting("gpu").applied_at == first


def test_a_bell_is_answered_at_once(running: Controller, host: ScriptedHost) -> None:
    wait_until(lambda: setting("gpu").applied_bytes == 1000)
    wish("gpu", 2000)
    names.client().rpush(names.control_key("local"), json.dumps({"op": "reconcile"}))

    wait_until(lambda: setting("gpu").applied_bytes == 2000, 2)
    assert host.sizes["gpu"] == 2000


def test_a_clear_is_done_and_its_outcome_recorded(running: Controller) -> None:
    asked = TierChange.objects.create(engine="local", cache_tier="cpu", action="clear", at=timezone.now())
    message = {"op": "clear", "tier": "cpu", "change_id": asked.pk}
    names.client().rpush(names.control_key("local"), json.dumps(message))

    wait_until(lambda: TierChange.objects.get(pk=asked.pk).new_value == "7 blocks dropped")


def test_an_abort_reaches_the_engine(running: Controller, host: ScriptedHost) -> None:
    wait_until(lambda: bool(names.client().publish(names.ABORT_CHANNEL, "run-1")))

    wait_until(lambda: "run-1" in host.aborted)


def test_nonsense_in_the_control_list_does_no_harm(running: Controller, host: ScriptedHost) -> None:
    for nonsense in ("{", "[]", '{"op": "clear"}', "7"):
        names.client().rpush(names.control_key("local"), nonsense)
    wish("gpu", 3000)
    names.client().rpush(names.control_key("local"), json.dumps({"op": "reconcile"}))

    wait_until(lambda: host.sizes["gpu"] == 3000, 8)
