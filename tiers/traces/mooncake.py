"""Mooncake's traces (Qin et al., FAST'25): `timestamp` in ms, `input_length`, `output_length`, `hash_ids`.

One id for each 512 tokens of the prompt, chained over what precedes them; the last block may be partial, and is looked
up like the others, as in the published hit rates. What the answer filled is not told.
"""

from tiers.traces.fields import Told, WrongValueError, names, optional_number, shown, text
from tiers.traces.request import TraceRequest

BLOCK_TOKENS = 512


def read(told: Told, at_seconds: float) -> TraceRequest:
    ids, length = names(told, "hash_ids"), told.get("input_length")
    if not isinstance(length, int) or isinstance(length, bool) or -(-length // BLOCK_TOKENS) != len(ids) or length < 0:
        raise WrongValueError(
            f"“input_length” is {shown(length)} with {len(ids):,} “hash_ids”; expected one id for each "
            f"{BLOCK_TOKENS} tokens."
        )
    tokens = [BLOCK_TOKENS] * len(ids)
    if ids:
        tokens[-1] = length - BLOCK_TOKENS * (len(ids) - 1)
    num_output = optional_number(told, "output_length")
    return TraceRequest(at_seconds, "", text(told, "model"), ids, tokens, length, num_output)
