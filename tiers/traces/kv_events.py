"""Recordings of vLLM's KV events (vllm/distributed/kv_events.py, vLLM 0.32): known, so that they can be refused.

They tell which blocks were stored and removed. By default a block that is found again is no event at all, so what was
asked for and hit leaves no trace. With `kv_cache_report_mode: full` (a request's extra argument, vLLM pull request
45261) found blocks are stored once more, but again for each time that a waiting request is looked at, and neither where
a request begins nor which of its tokens were the prompt's is told: any hit rate would be a guess.
"""

from typing import NoReturn

from tiers.traces.request import LoadTokenizer

_TAGS = (b"BlockStored", b"BlockRemoved", b"AllBlocksCleared")
REFUSAL = (
    "KV events tell which blocks were stored and removed, not which were asked for, so no hit rate follows from them. "
    "Record lookups instead: LMCache's --lookup-hash-log-dir, or TIERSCOPE_RECORD_TRACE of an engine of ours."
)


def fits(start: bytes) -> bool:
    """As msgpack or as JSON: the names of the events are written out in both."""
    return any(tag in start for tag in _TAGS)


def reader(load_tokenizer: LoadTokenizer | None, block_tokens: int) -> NoReturn:
    raise ValueError(REFUSAL)
