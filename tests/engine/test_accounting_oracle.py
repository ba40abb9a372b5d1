"""Requests one after the other: each block is booked to the tier in which a naive list of lists has it."""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.sequence import blocks_for
from tests.engine.harness import BLOCK_SIZE, SLAB, make_rig
from tests.engine.mock_runner import expected_tokens
from tests.tiers.oracle import OracleHierarchy
from tiers import Tier, WriteMode, root_key

PREFIXES: tuple[list[int], ...] = ([1] * 4, [1] * 9, [1] * 8 + [2] * 7, [3] * 13, [])
PROMPTS = st.builds(
    lambda prefix, rest: [*prefix, *rest],
    st.sampled_from(PREFIXES),
    st.lists(st.integers(0, 1), min_size=1, max_size=11),
)


def answer_length(prompt: list[int], wanted: int) -> int:
    """Short enough to fit into the prompt's last block.

    An answer that needs another block makes gpu evict in the middle of the request, when some of its blocks are stored
    or found again already; the oracle takes all blocks of a request at its start.
    """
    return min(wanted, blocks_for(len(prompt), BLOCK_SIZE) * BLOCK_SIZE - len(prompt) + 1)


@settings(max_examples=120, deadline=None)
@given(
    sizes=st.tuples(st.integers(8, 12), st.integers(0, 6), st.integers(0, 8)),
    mode=st.sampled_from(WriteMode),
    requests=st.lists(st.tuples(PROMPTS, st.integers(1, 6)), min_size=1, max_size=14),
)
def test_the_split_by_tier_is_what_the_oracle_predicts(
    sizes: tuple[int, int, int], mode: WriteMode, requests: list[tuple[list[int], int]]
) -> None:
    oracle = OracleHierarchy(sizes, mode)
    root = root_key(fingerprint="mock", salt="", block_size=BLOCK_SIZE, dtype=SLAB.dtype)
    with tempfile.TemporaryDirectory(prefix="tierscope-test-") as folder:
        gpu, cpu, disk = sizes
        rig = make_rig(gpu=gpu, cpu=cpu, disk=disk, path=Path(folder), mode=mode, max_num_batched_tokens=7 + 1)
        for number, (prompt, wanted) in enumerate(requests):
            max_tokens = answer_length(prompt, wanted)
            answer = rig.ask(f"r{number}", prompt, max_tokens)
            assert answer.tokens == expected_tokens(prompt, max_tokens)
            predicted = oracle.request_tokens(root, prompt, answer.tokens, BLOCK_SIZE)
            counted = {tier: predicted.count(tier) * BLOCK_SIZE for tier in Tier}
            assert answer.usage.hit_tokens == counted
        rig.close()
