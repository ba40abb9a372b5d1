"""A Prometheus that holds what the store holds, sample by sample as it would have scraped it. Measures nothing."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from bench._month import DAY, DAYS
from bench._origins import FACTS, HITS, STEP, Origins, labels
from tests.e2e.stack import free_port

_BLOCK = 7_200  # seconds: promtool reads a text once for each block in it
_PROMPTS = "tierscope_prompt_tokens_total"


def write_blocks(folder: Path, num_engines: int, start: int) -> None:
    """By promtool, a block of two hours at a time."""
    end = start + DAYS * DAY
    for at in range(start - start % _BLOCK, end + 1, _BLOCK):
        stamps = np.arange(max(at, start), min(at + _BLOCK, end + STEP), STEP)
        if not len(stamps):
            continue
        text = folder / "block.txt"
        text.write_text(_text(num_engines, stamps, start))
        argv = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(text), str(folder / "data")]
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)


def _text(num_engines: int, stamps: Any, start: int) -> str:
    tables = [Origins(number).counters((stamps - start) // STEP) for number in range(num_engines)]
    parts: list[str] = []
    for name in dict.fromkeys(name for *_, name in FACTS):
        parts.append(f"# TYPE {name.removesuffix('_total')} counter\n")
        for number, table in enumerate(tables):
            for column, (_, tier, its_name) in enumerate(FACTS):
                if its_name == name:
                    series = f'{name}{{instance="e{number}:80",job="fleet",{labels("0", tier)}}}'
                    values = zip(table[:, column].tolist(), stamps.tolist(), strict=True)
                    parts += [f"{series} {value} {stamp}\n" for value, stamp in values]
    return "".join(parts) + "# EOF\n"


@contextmanager
def a_prometheus(folder: Path) -> Iterator[httpx.Client]:
    """Scrapes nothing; keeps a year. Yields once it has no more blocks to put together."""
    port = free_port()
    config = folder / "prometheus.yml"
    config.write_text("global: {scrape_interval: 1m}\n")
    argv = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}"]
    argv += [f"--web.listen-address=127.0.0.1:{port}", "--storage.tsdb.retention.time=400d", "--log.level=error"]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60)
            _wait_until_compact(client, folder / "data")
            yield client
        finally:
            server.terminate()


def _wait_until_compact(client: httpx.Client, data: Path, seconds: float = 180) -> None:
    """It looks for blocks that can be put together once a minute, and puts all together that it finds."""
    deadline, blocks, since = time.monotonic() + seconds, set[Path](), time.monotonic()
    while time.monotonic() < min(deadline, since + 70):
        now = set(data.glob("*/meta.json"))
        if now != blocks:
            blocks, since = now, time.monotonic()
        time.sleep(1)
    assert client.get("/-/ready").status_code == 200


def disk_bytes(folder: Path) -> int:
    """Of its blocks."""
    blocks = [path.parent for path in (folder / "data").glob("*/meta.json")]
    return sum(file.stat().st_size for block in blocks for file in block.rglob("*") if file.is_file())


def hit_rates(client: httpx.Client, start: int, end: int, step: int) -> dict[str, list[float]]:
    """By tier, step by step."""
    over = f"[{step}s]"
    query = (
        f"sum by (cache_tier) (increase({HITS}{over})) "
        f"/ ignoring (cache_tier) group_left sum(increase({_PROMPTS}{over}))"
    )
    told: dict[str, str | int] = {"query": query, "start": start + step, "end": end, "step": step}
    answer = client.get("/api/v1/query_range", params=told).raise_for_status().json()
    return {
        series["metric"]["cache_tier"]: [float(value) for _, value in series["values"]]
        for series in answer["data"]["result"]
    }
