"""LMCache's lookup-hash logs, `lookup_hashes_*.jsonl` of `lmcache server --lookup-hash-log-dir`.

Written by LookupHashLoggingSubscriber (LMCache 0.5.6, lmcache/v1/mp_observability/subscribers/logging/lookup_hash.py),
one line a lookup: `timestamp` in s, `request_id`, `model_name`, `chunk_size`, `seq_len`, `dtypes`, `shapes` and
`chunk_hashes`, those of full chunks, each over all before it. Tokens after the last full chunk are always a miss, as in
LMCache's own simulator. Prompts without a full chunk are not in the log; cache salts are not told.
"""

from tiers.traces.fields import Told, WrongValueError, names, number, text
from tiers.traces.request import TraceRequest


def read(told: Told, at_seconds: float) -> TraceRequest:
    hashes, chunk, length = names(told, "chunk_hashes"), number(told, "chunk_size"), number(told, "seq_len")
    if len(hashes) * chunk > length:
        raise WrongValueError(
            f"“seq_len” is {length:,} with {len(hashes):,} “chunk_hashes” of {chunk:,} tokens; expected no more "
            "tokens in chunks than there are."
        )
    model = text(told, "model_name")
    # LMCache's keys are of a model: equal tokens of two models are two chunks.
    ids = [f"{model} {each}" for each in hashes]
    return TraceRequest(at_seconds, "", model, ids, [chunk] * len(ids), length)
