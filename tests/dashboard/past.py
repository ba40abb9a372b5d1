"""A real Prometheus, or VictoriaMetrics, that has six hours of engines in the past, told to the token."""

import subprocess
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.e2e.stack import free_port
from tests.e2e.victoria import VictoriaMetrics

STEP = 60
NUM_STEPS = 400  # more than three pieces
END = int(time.time()) // 3600 * 3600 - 3600
START = END - NUM_STEPS * STEP
RESET_AT = 150  # the engine starts anew after this step
SELECTOR = '{instance="gpu-7:8000"}'
TRUTH = {
    ("prompt_tokens", ""): 100 * (NUM_STEPS - 1),
    ("computed_tokens", ""): 50 * (NUM_STEPS - 1),
    ("hit_tokens", "gpu"): 30 * (NUM_STEPS - 1),
    ("hit_tokens", "cpu"): 20 * (NUM_STEPS - 1),
}  # the step of the restart tells 0 again


def values(step: int) -> dict[str, int]:
    """What an engine told at a step: 100 prompt tokens a step, of which 30 and 20 were hits."""
    since = step if step <= RESET_AT else step - RESET_AT - 1
    return {"prompt": 100 * since, "local_compute": 50 * since, "device": 30 * since, "host": 20 * since}


def _samples(instance: str, job: str) -> Iterator[tuple[str, str]]:
    """(family, line) of one that speaks vLLM's names."""
    labels = f'engine="0",instance="{instance}",job="{job}",model_name="m"'
    for step in range(NUM_STEPS + 1):
        at, told = START + step * STEP, values(step)
        for source in ("device", "host"):
            name = "vllm:prompt_tokens_cached_by_source"
            yield name, f'{name}_total{{{labels},source="{source}"}} {told[source]} {at}'
        name = "vllm:prompt_tokens_by_source"
        yield name, f'{name}_total{{{labels},source="local_compute"}} {told["local_compute"]} {at}'
        yield "vllm:prompt_tokens", f"vllm:prompt_tokens_total{{{labels}}} {told['prompt']} {at}"
        if job == "tierscope":
            yield "tierscope_engine", f'tierscope_engine_info{{{labels},boot_id="b"}} 1 {at}'


def _text(samples: Iterable[tuple[str, str]]) -> str:
    families: dict[str, list[str]] = defaultdict(list)
    for name, line in samples:
        families[name].append(line)
    kinds = {"tierscope_engine": "info"}
    told = [f"# TYPE {name} {kinds.get(name, 'counter')}\n" + "\n".join(lines) for name, lines in families.items()]
    return "\n".join([*told, "# EOF\n"])


TARGETS = (("gpu-7:8000", "vllm"), ("gpu-9:8000", "vllm"), ("web:8000", "tierscope"))


@contextmanager
def past_victoria(folder: Path) -> Iterator[str]:
    """The same in a VictoriaMetrics, which takes times in milliseconds. By a path, as one of a cluster has."""
    lines = (line.rpartition(" ") for target in TARGETS for _, line in _samples(*target))
    with VictoriaMetrics(folder) as victoria:
        victoria.take("".join(f"{sample} {at}000\n" for sample, _, at in lines))
        yield f"{victoria.url}/prometheus"


@contextmanager
def past_prometheus(folder: Path) -> Iterator[str]:
    """Its URL. Two vLLM servers, gpu-7 and gpu-9, and a Tierscope of others."""
    (folder / "prometheus.yml").write_text("global: {}\n")
    (folder / "history.txt").write_text(_text(sample for target in TARGETS for sample in _samples(*target)))
    made = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(folder / "history.txt"), str(folder / "data")]
    subprocess.run(made, check=True, capture_output=True, timeout=120)
    port = free_port()
    argv = ["prometheus", f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}"]
    argv += [f"--web.listen-address=127.0.0.1:{port}", "--log.level=error", "--storage.tsdb.retention.time=10y"]
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        _wait(url)
        yield url
    finally:
        process.terminate()
        process.wait(20)


def _wait(url: str) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            if httpx.get(f"{url}/-/ready", timeout=2).is_success:
                return
        except httpx.TransportError:
            pass
        assert time.monotonic() < deadline
        time.sleep(0.1)
