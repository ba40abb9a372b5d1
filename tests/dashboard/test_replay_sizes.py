"""Sizes of a replay's tiers as people write them."""

import pytest

from dashboard.replay_sizes import ReplaySize, parse_replay_size


@pytest.mark.parametrize(
    ("text", "size", "words"),
    [
        ("10000", ReplaySize(10_000, "blocks"), "10,000 blocks"),
        (" 1 block ", ReplaySize(1, "blocks"), "1 block"),
        ("10,000 blocks", ReplaySize(10_000, "blocks"), "10,000 blocks"),
        ("2M tokens", ReplaySize(2_000_000, "tokens"), "2,000,000 tokens"),
        ("64k tokens", ReplaySize(64_000, "tokens"), "64,000 tokens"),
        ("2 GiB", ReplaySize(2 << 30, "bytes"), "2 GiB"),
        ("512b", ReplaySize(512, "bytes"), "512 B"),
        ("0", ReplaySize(0, "blocks"), "0 blocks"),
    ],
)
def test_a_size_is_read_as_it_is_written(text: str, size: ReplaySize, words: str) -> None:
    assert parse_replay_size(text) == size
    assert size.in_words() == words


@pytest.mark.parametrize(
    "text", ["", "lots", "-1", "1.5 blocks", "blocks", "1 parsec", "9" * 30, "9e9 tokens", "k tokens"]
)
def test_what_is_no_size_is_said(text: str) -> None:
    with pytest.raises(ValueError, match="write it like 10000"):
        parse_replay_size(text)


def test_sizes_become_whole_blocks() -> None:
    assert ReplaySize(7, "blocks").blocks(16, 1000) == 7
    assert ReplaySize(100, "tokens").blocks(16, 1000) == 6
    assert ReplaySize(1 << 20, "bytes").blocks(16, 1024) == 64
