"""Traces from files: two forms, and every fault with its line."""

import gzip
import json
from pathlib import Path

import pytest

from tiers.whatif import HitCurve, TouchOrder, TraceError, read_trace, stack_positions, trace_files

TRACE = Path(__file__).parents[4] / "shared" / "traces" / "mooncake_conversation_trace.jsonl.gz"
GOOD = b'{"timestamp": 0, "input_length": 600, "output_length": 1, "hash_ids": [1, 2]}\n'


@pytest.mark.skipif(not TRACE.exists(), reason=f"the trace is not at {TRACE}")
@pytest.mark.parametrize(
    ("order", "known"),
    [
        ("head", {None: 0.3664, 100_000: 0.3637, 50_000: 0.3546, 30_000: 0.3257, 10_000: 0.2112, 1_000: 0.0445}),
        ("tail", {10_000: 0.2116}),
    ],
)
def test_the_known_answers_on_an_hour_of_conversations(order: str, known: dict[int | None, float]) -> None:
    accesses = read_trace(TRACE)
    assert (accesses.num_requests, accesses.num_accesses, accesses.num_unique) == (12_031, 288_500, 182_790)
    curve = HitCurve()
    curve.add(stack_positions(accesses, TouchOrder(order)))
    rates = [round(hits / curve.total, 4) for hits in curve.at([*known])]
    assert rates == list(known.values())


def test_a_plain_trace_names_blocks_as_it_likes(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text('{"block_ids": ["a", 7], "tokens": [16, 3]}\n\n{"block_ids": ["a"]}\n')
    accesses = read_trace(path)
    assert accesses.block_ids.tolist() == [0, 1, 0]
    assert accesses.num_tokens.tolist() == [16, 3, 1]


def test_a_gzipped_trace_is_told_by_its_content(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_bytes(gzip.compress(GOOD))
    assert read_trace(path).num_tokens.tolist() == [512, 88]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (b"{", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[1]", "expected a JSON object, got list"),
        (b"{}", "neither “hash_ids”"),
        (b'{"hash_ids": [1], "input_length": 513}', "expected one id for each 512 tokens"),
        (b'{"hash_ids": [1]}', "“input_length” is None"),
        (b'{"hash_ids": [1], "input_length": true}', "“input_length” is True"),
        (b'{"hash_ids": 1, "input_length": 1}', "list of numbers or texts"),
        (b'{"block_ids": [null]}', "list of numbers or texts"),
        (b'{"block_ids": [1, 2], "tokens": [1]}', "a count for each of the 2 blocks"),
        (b'{"block_ids": [1], "tokens": [-1]}', "a count for each"),
        (b'{"block_ids": [1], "tokens": [1e9]}', "a count for each"),
    ],
)
def test_a_wrong_line_is_told_with_its_number(tmp_path: Path, line: bytes, sentence: str) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_bytes(GOOD + line + b"\n")
    with pytest.raises(TraceError, match="line 2: ") as caught:
        read_trace(path)
    assert sentence in str(caught.value)


def test_a_torn_gzip_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "trace.gz"
    path.write_bytes(gzip.compress(GOOD * 1000)[:-20])
    with pytest.raises(TraceError, match="the compressed file is torn"):
        read_trace(path)


def test_an_empty_file_is_no_trace(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_bytes(b"\n")
    with pytest.raises(TraceError, match="has no requests"):
        read_trace(path)


def test_lines_and_accesses_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "trace"
    path.write_text(json.dumps({"block_ids": list(range(50))}))
    monkeypatch.setattr(trace_files, "MAX_ACCESSES", 49)
    with pytest.raises(TraceError, match="more than 49 block accesses"):
        read_trace(path)
    monkeypatch.setattr(trace_files, "MAX_LINE_BYTES", 99)
    with pytest.raises(TraceError, match="longer than 99 bytes"):
        read_trace(path)
