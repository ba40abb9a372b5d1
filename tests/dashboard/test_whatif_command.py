"""`manage.py whatif`: what other sizes would have done with a trace, as a table or JSON."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command


@pytest.fixture
def trace(tmp_path: Path) -> str:
    """Two chats over one system prompt, each asked twice in turns."""
    chats = [{"block_ids": ["s", chat], "tokens": [16, 8]} for chat in ("a", "b", "a", "b")]
    path = tmp_path / "trace.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in chats))
    return str(path)


def ask(*arguments: str) -> Any:
    out = io.StringIO()
    call_command("whatif", *arguments, "--json", stdout=out)
    return json.loads(out.getvalue())


def test_hit_rates_are_told_by_capacity(trace: str) -> None:
    told = ask(trace, "--blocks", "1,3,inf")
    assert (told["requests"], told["accesses"], told["unique"], told["tokens"]) == (4, 8, 3, 96)
    assert told["hit_rate"] == {"1": 3 / 8, "3": 5 / 8, "inf": 5 / 8}
    assert told["token_hit_rate"] == {"1": 48 / 96, "3": 64 / 96, "inf": 64 / 96}


def test_a_hierarchy_is_split_by_tier(trace: str) -> None:
    tiers = ask(trace, "--tiers", "gpu=1,cpu=2")["tiers"]
    assert {name: (tier["blocks"], tier["hit_blocks"], tier["hit_tokens"]) for name, tier in tiers.items()} == {
        "gpu": (1, 3, 48),
        "cpu": (2, 2, 16),
    }


def test_the_table_has_a_line_for_each_size_and_tier(trace: str) -> None:
    out = io.StringIO()
    call_command("whatif", trace, "--blocks", "1000,inf", "--tiers", "gpu=1,cpu=2", stdout=out)
    lines = [line.split() for line in out.getvalue().splitlines() if line]
    assert ["1,000", "62.50%", "66.67%"] in lines
    assert ["cpu", "25.00%", "16.67%"] in lines


def test_a_sample_is_told_beside_the_exact_answer(trace: str) -> None:
    told = ask(trace, "--blocks", "1,3,inf", "--sample-rate", "0.5")
    assert told["sample"]["hit_rate"] == told["hit_rate"], "so few blocks are all among the newest"
    assert told["sample"]["token_hit_rate"] == told["token_hit_rate"]
    assert (told["sample"]["rate"], told["sample"]["kept_blocks"]) == (1, 3)


def test_another_policy_is_told_beside_lru(trace: str) -> None:
    told = ask(trace, "--blocks", "2,inf", "--policy", "s3fifo")["policy"]
    assert (told["name"], told["rate"]) == ("s3fifo", 1)
    assert told["hit_rate"]["inf"] == 5 / 8
    assert 0 < told["hit_rate"]["2"] <= 5 / 8


def test_the_table_has_a_part_for_the_sample_and_the_policy(trace: str) -> None:
    out = io.StringIO()
    call_command("whatif", trace, "--blocks", "inf", "--policy", "arc", "--sample-rate", "1", stdout=out)
    assert out.getvalue().count("62.50%") == 3
    assert "arc, of 1 of the blocks" in out.getvalue()
    assert "3 kept" in out.getvalue()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--sample-rate", "0"], "The sample rate is 0; expected more than 0 and at most 1"),
        (["--sample-rate", "0.1", "--touch", "head"], "leave --touch out"),
        (["--policy", "arc", "--sample-rate", "0.000000001"], "take more"),
    ],
)
def test_a_sample_that_cannot_be_is_told(trace: str, arguments: list[str], sentence: str) -> None:
    with pytest.raises(CommandError, match=sentence):
        call_command("whatif", trace, *arguments)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--blocks", "ten"], "“ten” is no number of blocks"),
        (["--tiers", "gpu=1,ram=2"], "“ram” is no tier; expected gpu, cpu, disk, remote"),
        (["--tiers", "cpu=1,gpu=2"], "fastest first"),
        (["--tiers", "gpu"], "“” is no number of blocks"),
    ],
)
def test_a_wrong_size_is_told(trace: str, arguments: list[str], sentence: str) -> None:
    with pytest.raises(CommandError, match="Error: argument") as caught:
        call_command("whatif", trace, *arguments)
    assert sentence in str(caught.value)


def test_a_file_that_is_no_trace_is_told(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_text("hello\n")
    with pytest.raises(CommandError, match="line 1: not JSON"):
        call_command("whatif", str(path))
    with pytest.raises(CommandError, match="No such file"):
        call_command("whatif", str(tmp_path / "gone"))


def test_wrong_lines_are_left_out_and_told_where_that_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text('{"block_ids": [1]}\nhello\n{"block_ids": [1]}\n{"block_ids": 1}\n')
    told = ask(str(path), "--keep-going")
    assert (told["requests"], told["wrong_lines"]["count"]) == (2, 2)
    assert [f"line {number}: " in told["wrong_lines"]["first"][index] for index, number in enumerate([2, 4])]
    out = io.StringIO()
    call_command("whatif", str(path), "--keep-going", stdout=out)
    assert "2 wrong lines were left out" in out.getvalue()


def test_one_tenant_is_counted_while_all_take_their_room(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("time,tenant,block_ids,tokens\n1,x,a,16\n2,y,b,16\n3,x,a,16\n")
    told = ask(str(path), "--tenant", "x", "--blocks", "1,2")
    assert (told["requests"], told["accesses"], told["unique"], told["tokens"]) == (2, 2, 1, 32)
    assert told["hit_rate"] == {"1": 0, "2": 0.5}
    with pytest.raises(CommandError, match="no tenant “z”"):
        call_command("whatif", str(path), "--tenant", "z")


def test_one_model_is_counted_while_all_take_their_room(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("time,model,block_ids,tokens\n1,m,a,16\n2,n,b,16\n3,m,a,16\n")
    assert ask(str(path), "--model", "m", "--blocks", "1,2")["hit_rate"] == {"1": 0, "2": 0.5}
    with pytest.raises(CommandError, match="no model “z”"):
        call_command("whatif", str(path), "--model", "z")


def test_tokens_in_no_block_are_asked_for_and_never_hit(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text('{"block_ids": ["a"], "tokens": 16, "prompt_tokens": 20, "output_block_ids": ["b"]}\n' * 2)
    told = ask(str(path), "--blocks", "inf", "--sample-rate", "1", "--policy", "arc")
    assert (told["accesses"], told["unique"], told["tokens"]) == (2, 1, 40)
    for answer in (told, told["sample"], told["policy"]):
        assert (answer["hit_rate"]["inf"], answer["token_hit_rate"]["inf"]) == (0.5, 0.4)


def test_a_tokenizer_that_is_none_is_told(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text('{"input": "a", "output": "b"}\n')
    with pytest.raises(CommandError, match=r"gone.json cannot be read: No such file"):
        call_command("whatif", str(path), "--tokenizer", str(tmp_path / "gone.json"))
    with pytest.raises(CommandError, match=r"blocks of 0 tokens; expected 1 to"):
        call_command("whatif", str(path), "--block-tokens", "0")
