"""An engine and a Prometheus that run: what they tell is the same, and which of them is away is told."""

import shutil
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from django.utils import timezone

from dashboard.models import Source
from tests.dashboard.live_prometheus import look, source
from tests.dashboard.serving import Answer, serving
from tests.e2e.prometheus import Prometheus
from tests.stored import rows

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("valkey")]
TEXT = (Path(__file__).parent / "expositions" / "vllm-0.32.0-cpu-after.txt").read_text()


class Engine:
    """vLLM's own text, with counters that grow."""

    GROWING = {
        'vllm:prompt_tokens_total{engine="0",model_name="smollm2"}': 100,
        'vllm:prompt_tokens_by_source_total{engine="0",model_name="smollm2",source="local_compute"}': 50,
        'vllm:prompt_tokens_cached_by_source_total{engine="0",model_name="smollm2",source="device"}': 30,
        'vllm:prompt_tokens_cached_by_source_total{engine="0",model_name="smollm2",source="host"}': 20,
        'vllm:generation_tokens_total{engine="0",model_name="smollm2"}': 7,
    }

    def __init__(self) -> None:
        self.lines = TEXT.splitlines()
        self.grow(0)

    def grow(self, requests: int) -> None:
        self._count(lambda name, value: value + requests * self.GROWING[name])

    def restart(self) -> None:
        self._count(lambda name, value: 0)

    def _count(self, new: Callable[[str, int], int]) -> None:
        for number, line in enumerate(self.lines):
            name, _, value = line.rpartition(" ")
            if name in self.GROWING:
                self.lines[number] = f"{name} {new(name, int(float(value)))}"
        self.prompt_tokens = next(int(float(line.rpartition(" ")[2])) for line in self.lines if self._is_prompt(line))

    def _is_prompt(self, line: str) -> bool:
        return line.startswith("vllm:prompt_tokens_total{")

    def text(self, path: str) -> Answer:
        return Answer("\n".join(self.lines) + "\n")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("promtool") is None, reason="apt-get install prometheus")
def test_a_running_prometheus_tells_the_tokens_that_the_engine_tells(tmp_path: Path) -> None:
    """Also over a restart; and when the engine or the Prometheus ends, both are told apart, and nothing is booked."""
    engine = Engine()
    with ExitStack() as theirs:
        served = theirs.enter_context(serving(engine.text))
        instance = served.url.removeprefix("http://")
        with Prometheus(instance, tmp_path) as prometheus:
            direct = Source.objects.create(name="direct", url=f"{served.url}/metrics")
            live = source(prometheus.url, f'{{instance="{instance}"}}', name="live")
            for more in (0, 3, 2, None, 4):
                engine.restart() if more is None else engine.grow(more)
                until(lambda: values(prometheus, "vllm:prompt_tokens_total") == [engine.prompt_tokens])
                look(direct, timezone.now())
                look(live, timezone.now())
            assert (direct.last_error, live.last_error) == ("", "")
            assert sums(direct) == sums(live)
            assert sums(live)["prompt_tokens", "", ""] == 900
            theirs.close()
            until(lambda: values(prometheus, "up") == [0])
            look(live, timezone.now())
            assert (
                live.last_error
                == f'The Prometheus cannot read the engine itself: up is 0 where {{instance="{instance}"}}.'
            )
    look(live, timezone.now())
    assert "Connection refused" in live.last_error
    assert sums(live)["prompt_tokens", "", ""] == 900


def values(prometheus: Prometheus, name: str) -> list[float]:
    return [float(each["value"][1]) for each in prometheus.query(name)]


def until(is_so: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def sums(of: Source) -> Counter[tuple[str, str, str]]:
    """Of every counter, histograms too; not how often it was looked at, and no gauges."""
    gauges = ("scrapes", "capacity_tokens", "capacity_bytes", "resident_tokens", "used_bytes", "up")
    found: Counter[tuple[str, str, str]] = Counter()
    for row in rows(resolution=86400, source_id=of.pk):
        if row.metric not in gauges:
            found[row.metric, row.cache_tier, row.detail] += row.value
    return +found
