"""Each form of a trace: a real file of it, what is made of a line, and every fault with its line."""

import csv
import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiers.keys import chain_keys, root_key
from tiers.traces import KINDS, CountFaults, TraceError, TraceRequest, open_trace
from tiers.traces.request import Messages
from tiers.whatif import HitCurve, TouchOrder, stack_positions, traced_accesses

DATA = Path(__file__).parent / "data"


class Letters:
    """A token a letter; the template writes each message's role before it."""

    def prompt(self, prompt: str | Messages) -> list[int]:
        text = prompt if isinstance(prompt, str) else "".join(f"<{m['role']}>{m['content']}" for m in prompt)
        return [ord(letter) for letter in text]

    def answer(self, text: str) -> list[int]:
        return [ord(letter) for letter in text]


def read(path: Path, block_tokens: int = 4, kind: str = "auto") -> list[TraceRequest]:
    with open_trace(path, kind=kind, load_tokenizer=Letters, block_tokens=block_tokens) as trace:
        return list(trace)


def lines(tmp_path: Path, *told: object) -> Path:
    path = tmp_path / "trace"
    path.write_text("".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in told))
    return path


# -- real files -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "kind", "starts_at", "num_requests"),
    [
        ("mooncake.jsonl", "mooncake", None, 6),
        ("lookups", "lmcache-lookups", 1790000003.230794, 9),
        ("lookups/*_00000[01].jsonl", "lmcache-lookups", 1790000003.230794, 8),
        ("chats.tar.gz", "chat", 1760428258.635837, 6),
    ],
)
def test_the_form_is_told_from_the_lines(name: str, kind: str, starts_at: float | None, num_requests: int) -> None:
    with open_trace(DATA / name, load_tokenizer=Letters) as trace:
        assert (trace.kind, trace.starts_at, trace.has_times) == (kind, starts_at, True)
        requests = list(trace)
        assert trace.share_read == 1
    assert len(requests) == num_requests
    assert requests[0].at_seconds == 0
    assert [request.at_seconds for request in requests] == sorted(request.at_seconds for request in requests)


def test_mooncakes_last_block_is_looked_up_though_it_is_partial() -> None:
    first = read(DATA / "mooncake.jsonl")[0]
    told = json.loads((DATA / "mooncake.jsonl").read_text().splitlines()[0])
    assert first.block_ids == told["hash_ids"]
    assert sum(first.block_tokens) == first.num_prompt_tokens == told["input_length"]
    assert first.num_output_tokens == told["output_length"]


@pytest.mark.parametrize(("capacity", "hit_tokens"), [(None, 5120), (8, 5120), (4, 3840), (3, 3072)])
def test_lookup_logs_give_what_lmcaches_own_simulator_gives(capacity: int | None, hit_tokens: int) -> None:
    """Files and numbers are LMCache 0.5.6's: its logger wrote the files, its simulator counted 9,001 tokens."""
    accesses = traced_accesses(read(DATA / "lookups")).accesses
    curve = HitCurve()
    curve.add(stack_positions(accesses, TouchOrder.HEAD), accesses.num_tokens)
    assert curve.hits(capacity) == hit_tokens
    assert accesses.total_tokens == 9001
    assert accesses.never_tokens == 9001 - sum(map(sum, (r.block_tokens for r in read(DATA / "lookups"))))


@pytest.mark.parametrize("name", ["kv_events.msgpack", "kv_events.jsonl"])
def test_kv_events_are_refused_with_what_to_record_instead(name: str) -> None:
    """Both were encoded by vLLM 0.32's own classes."""
    with pytest.raises(TraceError, match=r"no hit rate follows from them.*lookup-hash-log-dir"):
        read(DATA / name)


# -- texts ------------------------------------------------------------------------------------------------------------
def test_texts_become_the_blocks_that_the_engine_makes(tmp_path: Path) -> None:
    told = {"timestamp": 5, "session_id": "s", "input": "abcdefgh", "output": "ijkl", "model": "m"}
    request = read(lines(tmp_path, told))[0]
    root = root_key(fingerprint="m", salt="", block_size=4, dtype="")
    keys = chain_keys(root, [ord(letter) for letter in "abcdefghijk"], 4)
    assert (request.block_ids, request.output_block_ids) == (keys[:1], keys[1:]), "the last token is always computed"
    assert (request.num_prompt_tokens, request.num_output_tokens) == (8, 4)
    assert (request.prompt, request.model_name) == ("abcdefgh", "m")


def test_messages_go_through_the_chat_template(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": "b"}, {"type": "text", "text": "c"}]
    told = {"input": [{"role": "x", "content": "a"}, {"role": "y", "content": parts}], "output": ""}
    request = read(lines(tmp_path, told))[0]
    assert request.num_prompt_tokens == len("<x>a<y>bc")
    assert request.prompt == [{"role": "x", "content": "a"}, {"role": "y", "content": "bc"}]


def test_texts_without_a_tokenizer_are_refused() -> None:
    with pytest.raises(TraceError, match="needs a tokenizer"):
        open_trace(DATA / "chats.tar.gz")


@pytest.mark.parametrize("unit", [1, 1_000, 1_000_000, 1_000_000_000])
def test_unix_times_of_texts_are_told_by_their_size(tmp_path: Path, unit: int) -> None:
    told = [{"timestamp": (1_760_000_000 + 2 * n) * unit, "input": "a", "output": "b"} for n in range(2)]
    with open_trace(lines(tmp_path, *told), load_tokenizer=Letters) as trace:
        assert trace.starts_at == 1_760_000_000
        assert [request.at_seconds for request in trace] == [0, 2]


# -- our own ----------------------------------------------------------------------------------------------------------
OURS = {
    "time": 1790000000.5,
    "tenant": "acme",
    "model": "m",
    "block_ids": ["a", "b"],
    "tokens": 16,
    "prompt_tokens": 40,
    "output_tokens": 3,
    "output_block_ids": ["c"],
}
EXPECTED = TraceRequest(0.0, "acme", "m", ["a", "b"], [16, 16], 40, 3, ["c"])


def test_our_own_form_tells_all(tmp_path: Path) -> None:
    assert read(lines(tmp_path, OURS)) == [EXPECTED]


def test_csv_says_the_same_with_lists_by_spaces(tmp_path: Path) -> None:
    columns = "tenant,time,model,tokens,prompt_tokens,output_tokens,output_block_ids,block_ids\n"
    path = lines(tmp_path, columns, '"acme",1790000000.5,m,16,40,3,c,a b\n', ",1790000001,,1 2,,,,a b\n")
    assert read(path) == [EXPECTED, TraceRequest(0.5, "", "", ["a", "b"], [1, 2], 3)]


def test_a_prompt_in_csv_may_fill_a_line(tmp_path: Path) -> None:
    ids = " ".join(str(number) for number in range(100_000))
    assert len(read(lines(tmp_path, "block_ids,time\n", f"{ids},1\n"))[0].block_ids) == 100_000


def test_a_short_line_of_csv_leaves_the_process_s_limit_as_it_is(tmp_path: Path) -> None:
    before = csv.field_size_limit()
    read(lines(tmp_path, "block_ids,time\n", "1,1\n"))
    assert csv.field_size_limit() == before


def test_blocks_without_counts_hold_one_token_each(tmp_path: Path) -> None:
    path = lines(tmp_path, {"block_ids": ["a", 7], "tokens": [16, 3]}, "\n", {"block_ids": ["a"]})
    assert [request.block_tokens for request in read(path)] == [[16, 3], [1]]


def test_without_times_all_are_at_the_beginning(tmp_path: Path) -> None:
    with open_trace(lines(tmp_path, {"block_ids": [1]}, {"block_ids": [2]})) as trace:
        assert (trace.has_times, trace.starts_at) == (False, None)
        assert [request.at_seconds for request in trace] == [0, 0]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=5,
)
FIELDS = st.sampled_from(
    [
        "timestamp",
        "time",
        "hash_ids",
        "input_length",
        "output_length",
        "chunk_hashes",
        "chunk_size",
        "seq_len",
        "model_name",
        "input",
        "output",
        "block_ids",
        "tokens",
        "prompt_tokens",
        "output_tokens",
        "output_block_ids",
        "tenant",
        "model",
    ]
)
OBJECTS = st.dictionaries(FIELDS, VALUES, max_size=8)


@given(st.lists(st.binary(max_size=60) | OBJECTS | st.sampled_from(["time,block_ids,tokens", "1,a b,3"]), max_size=6))
def test_whatever_is_read_only_sentences_come_of_it(told: list[object]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "trace"
        parts = (
            part if isinstance(part, bytes) else part.encode() if isinstance(part, str) else json.dumps(part).encode()
            for part in told
        )
        path.write_bytes(b"\n".join(parts))
        faults = CountFaults()
        with suppress(TraceError), open_trace(path, load_tokenizer=Letters, faults=faults) as trace:
            for request in trace:
                assert sum(request.block_tokens) <= request.num_prompt_tokens
                assert len(request.block_tokens) == len(request.block_ids)


# -- faults -----------------------------------------------------------------------------------------------------------
GOOD = {
    "mooncake": {"timestamp": 0, "input_length": 600, "output_length": 1, "hash_ids": [1, 2]},
    "lmcache-lookups": {"timestamp": 1, "chunk_size": 2, "seq_len": 5, "chunk_hashes": ["0x1", "0x2"]},
    "chat": {"timestamp": 1, "input": "abcde", "output": "f"},
    "jsonl": {"time": 1, "block_ids": [1]},
}


@pytest.mark.parametrize(
    ("kind", "wrong", "sentence"),
    [
        ("mooncake", b"{", "not JSON"),
        ("mooncake", b"[" * 100_000, "not JSON"),
        ("mooncake", b"\xff\xfe", "not JSON"),
        ("mooncake", b"[1]", "expected a JSON object, got list"),
        ("mooncake", {"timestamp": None}, "“timestamp” is None; expected a time"),
        ("mooncake", {"timestamp": True}, "“timestamp” is True; expected a time"),
        ("mooncake", {"timestamp": 1e300}, "up to the year 5138"),
        ("mooncake", {"timestamp": 10**400}, "up to the year 5138"),
        ("mooncake", {"input_length": json.loads("[" * 500 + "]" * 500)}, "expected one id for each 512 tokens"),
        ("mooncake", {"input_length": 1025}, "expected one id for each 512 tokens"),
        ("mooncake", {"input_length": None}, "“input_length” is None"),
        ("mooncake", {"input_length": -100, "hash_ids": []}, "“input_length” is -100"),
        ("mooncake", {"input_length": True, "hash_ids": [1]}, "“input_length” is True"),
        ("mooncake", {"hash_ids": 1}, "list of numbers or texts"),
        ("mooncake", {"output_length": -1}, "“output_length” is -1; expected a count"),
        ("lmcache-lookups", {"seq_len": 3}, "expected no more tokens in chunks than there are"),
        ("lmcache-lookups", {"seq_len": None}, "“seq_len” is None; expected a count"),
        ("lmcache-lookups", {"model_name": 7}, "“model_name” is 7; expected a text"),
        ("chat", {"input": ""}, "“input” has no tokens"),
        ("chat", {"input": 7}, "expected a text or a list of messages"),
        ("chat", {"input": "\ud800"}, "half of a character stands alone"),
        ("chat", b'{"timestamp": 1, "input": "a", "output": "\xed\xa0\x80"}', "half of a character stands alone"),
        ("chat", {"input": []}, "expected a text or a list of messages"),
        ("chat", {"input": [{"role": "user", "content": [{"type": "image_url"}]}]}, "expected a role and a content"),
        ("chat", {"output": None}, "“output” is None; expected a text"),
        ("jsonl", {"block_ids": [None]}, "list of numbers or texts"),
        ("jsonl", {"block_ids": "abc"}, "list of numbers or texts"),
        ("jsonl", {"block_ids": [1, 2], "tokens": [1]}, "a count for each of the 2 blocks"),
        ("jsonl", {"tokens": [-1]}, "a count for each"),
        ("jsonl", {"tokens": [1e9]}, "a count for each"),
        ("jsonl", {"tokens": [3], "prompt_tokens": 2}, "expected at least the blocks' 3"),
        ("jsonl", {"tenant": "x" * 201}, "at most 200 letters"),
        ("jsonl", b'{"time": 1}', "“block_ids” is not there"),
    ],
)
def test_a_wrong_line_is_told_with_its_number(tmp_path: Path, kind: str, wrong: object, sentence: str) -> None:
    line = wrong if isinstance(wrong, bytes) else json.dumps(GOOD[kind] | dict(wrong)).encode()  # type: ignore[call-overload]
    path = tmp_path / "trace.jsonl"
    path.write_bytes(json.dumps(GOOD[kind]).encode() + b"\n" + line + b"\n")
    with pytest.raises(TraceError, match="line 2: ") as caught:
        read(path)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("1,2,3\n", "3 fields; expected 2, one for each column"),
        ("x,1\n", "“time” is 'x'; expected a number"),
        ('"1,1\n', "not CSV"),
        (",1\n", "“time” is None; expected a time"),
    ],
)
def test_a_wrong_line_of_csv_is_told_with_its_number(tmp_path: Path, line: str, sentence: str) -> None:
    with pytest.raises(TraceError, match="line 3: ") as caught:
        read(lines(tmp_path, "time,block_ids\n", "1,1\n", line))
    assert sentence in str(caught.value)


def test_csv_names_each_column_once(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="line 1: expected the columns' names, each once"):
        read(lines(tmp_path, "time,block_ids,time\n", "1,1,2\n"))


def test_lines_that_are_wrong_can_be_left_out_and_are_all_counted(tmp_path: Path) -> None:
    wrong: Sequence[object] = ["hello\n", {"time": 1}, {"time": "x", "block_ids": [1]}] * 10
    path = lines(tmp_path, "hello\n", GOOD["jsonl"], *wrong, GOOD["jsonl"])
    faults = CountFaults()
    assert len(list(open_trace(path, faults=faults))) == 2
    assert faults.count == 31
    assert len(faults.sentences) == 20
    assert [f"{path}, line {number}: " in faults.sentences[index] for index, number in enumerate([1, 3, 4, 5])]


def test_what_has_no_form_is_told_with_all_that_there_are(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"line 1: not JSON .*“hash_ids” \(Mooncake's\).*“input”, “output”"):
        read(lines(tmp_path, "hello\n"))
    with pytest.raises(TraceError, match="line 1: none of the fields"):
        read(lines(tmp_path, "{}\n"))
    with pytest.raises(TraceError, match="has no requests"):
        read(lines(tmp_path, "\n"))


def test_a_form_can_be_named(tmp_path: Path) -> None:
    path = lines(tmp_path, GOOD["jsonl"] | GOOD["mooncake"])
    assert read(path, kind="jsonl")[0].block_ids == [1]
    assert read(path, kind="mooncake")[0].block_ids == [1, 2]
    with pytest.raises(TraceError, match=f"“x” is no form of a trace; expected one of {', '.join(KINDS)}"):
        read(path, kind="x")
