"""How fast a prompt of 1,024 tokens (64 blocks) comes to gpu from each slower tier, against the limit under that tier.

Through the real cache: from `acquire` until the lease is ready, with matching, books, threads and checksums. The gpu
pool is host memory here, full, and each block that comes pushes out one that the slower tier has already; only in
"exchanged with cpu" must that one be copied out first.
"""

import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from statistics import median

from bench._alternate import in_turns
from bench._limits import cold_reads, drop_page_cache, plain_copy, raw_gets, warm_reads, write_plain
from bench._loading import BATCH_BYTES, Loading
from bench.result import Result, compare
from tests.tiers.valkey import ValkeyServer
from tiers import Tier, TierConfig, WriteMode

ROUNDS = 41
BARS = {"cpu": 0.8, "disk": 0.8, "remote": 0.7}


def run() -> Iterable[Result]:
    yield from _cpu()
    yield from _disk()
    yield from _remote()


def _cpu() -> Iterator[Result]:
    size = 4 * BATCH_BYTES
    for name, mode, times in (("cpu", WriteMode.WRITE_THROUGH, 1), ("exchanged with cpu", WriteMode.WRITE_BACK, 2)):
        with Loading(TierConfig(Tier.CPU, size, mode)) as loading:
            limit = {"plain copy of as much": plain_copy(times * BATCH_BYTES)}
            yield _result(name, "cpu", times, loading, limit)


def _disk() -> Iterator[Result]:
    with tempfile.TemporaryDirectory(prefix="tierscope-bench-") as name:
        folder = Path(name)
        plain = write_plain(folder / "plain")
        with Loading(TierConfig(Tier.DISK, 5 * BATCH_BYTES, WriteMode.WRITE_THROUGH, path=folder)) as loading:
            yield _result("disk, warm", "disk", 1, loading, warm_reads(plain))
            yield _result("disk, cold", "disk", 1, loading, cold_reads(plain), lambda: drop_page_cache(folder))


def _remote() -> Iterator[Result]:
    with tempfile.TemporaryDirectory(prefix="tierscope-bench-") as folder:
        server = ValkeyServer(Path(folder)).start()
        try:
            remote = TierConfig(Tier.REMOTE, 5 * BATCH_BYTES, WriteMode.WRITE_THROUGH, url=server.url)
            with Loading(remote) as loading:
                yield _result("remote", "remote", 1, loading, {"raw pipelined GETs": raw_gets(server.url)})
        finally:
            server.kill()


def _result(
    name: str,
    bar: str,
    times: int,
    loading: Loading,
    limits: dict[str, Callable[[], object]],
    before: Callable[[], object] = lambda: None,
) -> Result:
    """The limit is the best of those given, by its median."""

    def prepare() -> None:
        loading.let_go()
        before()

    taken = in_turns({"ours": loading.load, **limits}, ROUNDS, prepare)
    seconds = {name: median(each) for name, each in taken.items()}
    best = min(limits, key=seconds.__getitem__)
    gigabytes = times * BATCH_BYTES / 1e9
    return compare(
        f"load 64 blocks from {name}" if times == 1 else f"64 blocks {name}",
        ours=gigabytes / seconds["ours"],
        reference=gigabytes / seconds[best],
        reference_name=best,
        unit="GB/s",
        bar=BARS[bar],
        better="higher",
    )
