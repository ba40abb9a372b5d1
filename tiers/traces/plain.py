"""Our own form, as JSON or CSV: `time`, `tenant`, `model`, `block_ids`, `tokens`, and what is known of the answer.

`tokens` says how many each block holds: a list, or one number for all. `prompt_tokens` may be more than they hold
together: what is left is never a hit. The engine records its own traffic so.
"""

from tiers.traces.fields import Told, WrongValueError, counts, names, optional_number, text
from tiers.traces.request import TraceRequest


def read(told: Told, at_seconds: float) -> TraceRequest:
    if "block_ids" not in told:
        raise WrongValueError("“block_ids” is not there; expected a list, empty for a prompt without blocks.")
    ids = names(told, "block_ids")
    tokens = counts(told, "tokens", len(ids), default=1)
    num_held = sum(tokens)
    num_prompt = optional_number(told, "prompt_tokens", num_held)
    if num_prompt < num_held:
        raise WrongValueError(f"“prompt_tokens” is {num_prompt:,}; expected at least the blocks' {num_held:,}.")
    return TraceRequest(
        at_seconds,
        text(told, "tenant"),
        text(told, "model"),
        ids,
        tokens,
        num_prompt,
        optional_number(told, "output_tokens"),
        names(told, "output_block_ids"),
    )
