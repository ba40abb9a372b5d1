"""Traffic that an engine records: read back it gives the engine's own hits, and nothing else than that."""

import gzip
import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import recording as recording_module
from engine import trace_writer
from engine.engine import Engine
from engine.recording import LiveRecording, NoRecording, RecordCounts, TraceRecord
from engine.trace_folder import TraceFolder
from engine.trace_writer import TraceWriter
from tests.engine.harness import BLOCK_SIZE, Rig, make_rig
from tests.engine.test_accounting_oracle import PROMPTS
from tests.engine.test_reuse import QuickRunner, curve_of, traffic
from tiers import chain_keys
from tiers.traces import open_trace
from tiers.whatif import HitCurve, stack_positions, traced_accesses

MiB = 1 << 20


def writer_of(path: Path, secret: bytes = b"secret", max_bytes: int = MiB) -> TraceWriter:
    folder = TraceFolder(path, max_bytes, lambda: 1_790_000_000.0)
    return TraceWriter(folder, secret=secret, model_name="mock", block_size=BLOCK_SIZE)


def recorded(path: Path, **sizes: Any) -> tuple[Rig, TraceWriter]:
    """A rig whose engine records into `path`, by a clock that says when each request was admitted: 1, 2, 3 …"""
    rig, writer = make_rig(**sizes), writer_of(path)
    ticks = iter(range(1, 1_000_000))
    config = rig.engine.config
    live = writer.recording(lambda: float(next(ticks)))
    rig.engine = Engine(config, rig.runner, rig.cache, clock=rig.clock, recording=live)
    return rig, writer


def lines(path: Path) -> list[dict[str, Any]]:
    files = sorted(path.iterdir()) if path.exists() else []
    return [json.loads(line) for file in files for line in gzip.decompress(file.read_bytes()).splitlines()]


def curve(path: Path) -> HitCurve:
    with open_trace(path) as trace:
        accesses = traced_accesses(trace).accesses
    found = HitCurve()
    found.add(stack_positions(accesses), accesses.num_tokens)
    found.miss(accesses.never_tokens)
    return found


@settings(max_examples=25)
@given(st.lists(st.tuples(PROMPTS, st.integers(1, 12)), min_size=1, max_size=12), st.integers(9, 30))
def test_read_back_it_gives_exactly_the_hits_that_the_engine_counted(
    requests: list[tuple[list[int], int]], gpu: int
) -> None:
    """One request after the other, also of blocks that answers filled, at every size."""
    with TemporaryDirectory() as folder:
        rig, writer = recorded(Path(folder), gpu=gpu, max_num_batched_tokens=9)
        for number, (prompt, max_tokens) in enumerate(requests):
            rig.ask(f"r{number}", prompt, max_tokens)
        writer.write()
        counted = curve_of(rig.engine.snapshot().counters)
        found = curve(Path(folder))
        assert found.at([bound // BLOCK_SIZE for bound in counted.bounds]) == [
            counted.hits(bound) for bound in counted.bounds
        ]
        assert found.total == counted.total
        rig.close()


def test_requests_that_overlap_differ_by_less_than_a_point_in_caches_that_hold_them(tmp_path: Path) -> None:
    """Two at once both compute what neither finds; in a trace the second one finds it. 0.8 points at most, here."""
    rig, writer = recorded(tmp_path, gpu=256, max_num_batched_tokens=256)
    live = LiveRecording(writer, lambda: 1.0)
    rig.engine = Engine(rig.engine.config, QuickRunner(), rig.cache, clock=rig.clock, recording=live)
    for number, (prompt, max_tokens) in enumerate(traffic(1, 40)):
        rig.submit(f"r{number}", prompt, max_tokens)
        while rig.engine.num_unfinished >= 2:
            rig.engine.step()
            live.check()
    rig.run()
    writer.write()
    counted, found = curve_of(rig.engine.snapshot().counters), curve(tmp_path)
    assert found.total == counted.total
    bounds = [bound for bound in counted.bounds if bound >= 64]
    errors = [(found.hits(bound // BLOCK_SIZE) - counted.hits(bound)) / counted.total for bound in bounds]
    assert max(map(abs, errors)) < 0.01
    rig.close()


# -- what is in it -----------------------------------------------------------------------------------------------------
def test_a_line_has_counts_and_names_of_blocks_and_no_text(tmp_path: Path) -> None:
    rig, writer = recorded(tmp_path)
    answer = rig.submit("r", [7] * 9, 5, tenant="acme")
    rig.run(answer)
    writer.write()
    (told,) = lines(tmp_path)
    assert (told["time"], told["tenant"], told["model"], told["tokens"]) == (1.0, "acme", "mock", BLOCK_SIZE)
    assert (told["prompt_tokens"], told["output_tokens"]) == (9, 5)
    assert [len(told[field]) for field in ("block_ids", "output_block_ids")] == [2, 1]
    assert set(told) == {
        *("time", "tenant", "model", "block_ids", "tokens", "prompt_tokens", "output_tokens", "output_block_ids")
    }


def names(path: Path, secret: bytes) -> list[str]:
    writer = writer_of(path, secret)
    writer.put(TraceRecord(1.0, "", chain_keys(bytes(16), [1] * 8, BLOCK_SIZE), [], 9, 1))
    writer.write()
    found: list[str] = lines(path)[0]["block_ids"]
    return found


def test_blocks_are_named_by_the_homes_secret(tmp_path: Path) -> None:
    mine, again, theirs = (names(tmp_path / name, secret) for name, secret in (("a", b"x"), ("b", b"x"), ("c", b"y")))
    assert mine == again
    assert not {*mine} & {*theirs}
    keys = {key.hex() for key in chain_keys(bytes(16), [1] * 8, BLOCK_SIZE)}
    assert not any(name in key for name in mine for key in keys)


def test_lines_are_in_the_order_of_admission(tmp_path: Path) -> None:
    rig, writer = recorded(tmp_path, max_num_batched_tokens=64)
    rig.run(rig.submit("long", [1] * 9, 9), rig.submit("short", [2] * 5, 1))
    writer.write()
    assert [(line["time"], line["output_tokens"]) for line in lines(tmp_path)] == [(1, 9), (2, 1)]


def test_too_much_does_not_wait_for_one_that_runs_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording_module, "MAX_HELD_KEYS", 1)
    rig, writer = recorded(tmp_path, max_num_batched_tokens=64)
    rig.run(rig.submit("long", [1] * 9, 9), rig.submit("short", [2] * 9, 1))
    writer.write()
    assert [line["time"] for line in lines(tmp_path)] == [2, 1]


def test_a_request_that_uses_no_cache_has_no_blocks(tmp_path: Path) -> None:
    rig, writer = recorded(tmp_path)
    rig.run(rig.submit("r", [1] * 20, cache="off"))
    writer.write()
    assert [(line["block_ids"], line["prompt_tokens"]) for line in lines(tmp_path)] == [([], 20)]


def test_a_request_that_was_never_admitted_is_not_recorded(tmp_path: Path) -> None:
    rig, writer = recorded(tmp_path)
    rig.submit("r", [1] * 20)
    rig.engine.abort("r")
    rig.run()
    writer.write()
    assert lines(tmp_path) == []


# -- what it may not do ------------------------------------------------------------------------------------------------
def test_what_is_too_much_is_dropped_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_writer, "MAX_PENDING_KEYS", 5)
    rig, writer = recorded(tmp_path)
    for number in range(4):
        rig.ask(f"r{number}", [number] * 9, 1)
    assert rig.engine.snapshot().counters.recording == RecordCounts(True, 0, 2)
    writer.write()
    rig.ask("later", [9] * 9, 1)
    writer.write()
    assert writer.counts() == RecordCounts(True, 3, 2)
    assert len(lines(tmp_path)) == 3


def test_a_disk_that_fails_costs_records_only_and_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way")
    rig, writer = recorded(tmp_path / "file")
    for number in range(3):
        assert rig.ask(f"r{number}", [number] * 9, 1).reason == "length"
        writer.write()
    assert writer.counts() == RecordCounts(True, 0, 3)
    assert len([record for record in caplog.records if "traffic is not recorded" in record.message]) == 1


def test_a_recorder_that_fails_costs_no_request(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(NoRecording):
        def admitted(self, sequence: object) -> None:
            raise RuntimeError("no")

        ended = admitted

    rig = make_rig()
    rig.engine = Engine(rig.engine.config, rig.runner, rig.cache, clock=rig.clock, recording=Failing())
    assert rig.ask("a", [1] * 20).reason == "length"
    assert "the request goes on" in caplog.text


def test_a_request_that_cannot_be_recorded_holds_up_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rig, writer = recorded(tmp_path)

    def fails(at: float, sequence: object) -> TraceRecord:
        raise RuntimeError("no")

    with monkeypatch.context() as patched:
        patched.setattr(recording_module, "_record", fails)
        assert rig.ask("a", [1] * 9).reason == "length"
    rig.ask("b", [2] * 9)
    writer.write()
    assert len(lines(tmp_path)) == 1


def test_switched_off_it_records_nothing() -> None:
    rig = make_rig()
    rig.ask("a", [1] * 20)
    assert rig.engine.snapshot().counters.recording == RecordCounts(False, 0, 0)


def test_a_stop_writes_what_is_there(tmp_path: Path) -> None:
    rig, writer = recorded(tmp_path)
    writer.start()
    rig.ask("a", [1] * 9)
    writer.stop()
    assert len(lines(tmp_path)) == 1
    writer_of(tmp_path).stop()


# -- the folder --------------------------------------------------------------------------------------------------------
def incompressible(number: int) -> bytes:
    return random.Random(number).randbytes(1000)


def test_all_files_together_stay_within_the_bound_and_the_oldest_go(tmp_path: Path) -> None:
    folder = TraceFolder(tmp_path / "traces", 16_000, lambda: 1_790_000_000.0)
    for number in range(60):
        folder.append(incompressible(number))
        folder.check()
    kept = b"".join(gzip.decompress(file.read_bytes()) for file in sorted((tmp_path / "traces").iterdir()))
    assert kept.endswith(b"".join(incompressible(number) for number in range(50, 60)))
    assert {file.stat().st_mode & 0o777 for file in (tmp_path / "traces").iterdir()} == {0o600}
    assert (tmp_path / "traces").stat().st_mode & 0o777 == 0o700


def test_a_new_process_goes_on_where_the_last_one_ended(tmp_path: Path) -> None:
    for begun_at in (1_790_000_000.0, 1_780_000_000.0):
        for number in range(3):
            TraceFolder(tmp_path, 80_000, lambda begun_at=begun_at: begun_at).append(incompressible(number))  # type: ignore[misc]
    assert [file.name for file in sorted(tmp_path.iterdir())] == ["20260921T141320Z-000001.jsonl.gz"]


def test_a_clock_that_is_set_back_begins_files_behind_the_others(tmp_path: Path) -> None:
    for begun_at in (1_790_000_000.0, 1_780_000_000.0):
        TraceFolder(tmp_path, 9_000, lambda begun_at=begun_at: begun_at).append(incompressible(0))  # type: ignore[misc]
    assert [file.name[-16:] for file in sorted(tmp_path.iterdir())] == ["-000001.jsonl.gz", "-000002.jsonl.gz"]


def test_what_somebody_else_put_into_the_folder_stays_and_names_no_file(tmp_path: Path) -> None:
    others = [tmp_path / name for name in ("0.jsonl.gz", "zz-9.jsonl.gz", "notes.txt")]
    for other in others:
        other.write_bytes(b"theirs" * 5000)
    folder = TraceFolder(tmp_path, 16_000, lambda: 1_790_000_000.0)
    for number in range(40):
        folder.append(incompressible(number))
        folder.check()
    assert {other.read_bytes() for other in others} == {b"theirs" * 5000}
    ours = [file.name for file in sorted(tmp_path.iterdir()) if file not in others]
    assert {name[:16] for name in ours} == {"20260921T141320Z"}


def test_what_is_larger_than_the_bound_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="more than the 100 that all files may have"):
        TraceFolder(tmp_path, 100).append(incompressible(0))


def test_a_write_that_fails_in_the_middle_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = TraceFolder(tmp_path, 80_000)
    folder.append(b"first")
    real: Callable[[int, bytes], int] = os.write
    sizes = iter([3])

    def fills_up(descriptor: int, data: bytes) -> int:
        if (size := next(sizes, None)) is None:
            raise OSError(28, "No space left on device")
        return real(descriptor, data[:size])

    monkeypatch.setattr(os, "write", fills_up)
    with pytest.raises(OSError, match="No space left"):
        folder.append(b"second")
    monkeypatch.undo()
    folder.append(b"third")
    (file,) = tmp_path.iterdir()
    assert gzip.decompress(file.read_bytes()) == b"firstthird"
