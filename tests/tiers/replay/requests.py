"""Requests as a trace has them, for replays: prompts as paths through a tree, with answers that fill blocks, too."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

BLOCK_TOKENS = 16


@dataclass(frozen=True)
class Request:
    """The last block of the prompt may be partial; three tokens more belong to no block."""

    block_ids: Sequence[Hashable]
    block_tokens: Sequence[int]
    output_block_ids: Sequence[Hashable] = ()
    tenant: str = ""

    @property
    def num_prompt_tokens(self) -> int:
        return sum(self.block_tokens) + 3


def request(
    blocks: Sequence[Hashable], answer: Sequence[Hashable] = (), last: int = BLOCK_TOKENS, tenant: str = ""
) -> Request:
    tokens = [BLOCK_TOKENS] * len(blocks)
    if tokens:
        tokens[-1] = last
    return Request(blocks, tokens, answer, tenant)


def path(system: int, shared: int, user: int, own: int) -> list[str]:
    return [f"s{system}.{n}" for n in range(shared)] + [f"s{system}.{shared}.u{user}.{n}" for n in range(own)]


def _drawn(drawn: tuple[Any, ...]) -> Request:
    *where, num_answer, last, tenant = drawn
    blocks = path(*where)
    return request(blocks, [f"{blocks[-1:]}a{n}" for n in range(num_answer)], last, tenant)


requests = st.lists(
    st.tuples(
        *(st.integers(0, 2), st.integers(0, 4), st.integers(0, 2), st.integers(0, 3)),
        *(st.integers(0, 2), st.integers(1, BLOCK_TOKENS), st.sampled_from("abc")),
    ).map(_drawn),
    min_size=1,
    max_size=40,
)
