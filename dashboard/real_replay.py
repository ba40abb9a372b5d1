"""`manage.py replay FILE --real`: a trace's texts to our own /v1, with a progress bar. Stores nothing itself.

What the engine made of them is in its series, like any other traffic.
"""

from itertools import islice
from pathlib import Path
from typing import Any

from tqdm import tqdm

from dashboard.charts import words
from dashboard.charts.palette import LOOKS
from dashboard.real_sender import Outcome, RealSender
from dashboard.sample_sender import Sender
from dashboard.sample_traffic import api_client

_MODEL_SECONDS = 60


def send_trace(path: Path, options: dict[str, Any]) -> Outcome:
    """Raises SendError, ValueError for what is no trace, or OSError."""
    from dashboard.replay_run import text_requests

    with api_client() as client, text_requests(path, options["form"], options["tokenizer"]) as trace:
        sender = RealSender(
            client,
            Sender(client).wait_for_model(_MODEL_SECONDS),
            speed=options["speed"],
            most_tokens=options["max_tokens"],
            at_once=options["at_once"],
        )
        with tqdm(desc=path.name, unit=" requests") as bar:
            return sender.send(islice(trace, options["requests"]), lambda: bar.update(1) and None)


def outcome_lines(outcome: Outcome) -> list[str]:
    """For a terminal."""
    lines = [f"{outcome.sent:,} requests sent, {outcome.answered:,} answered"]
    if outcome.too_long:
        lines.append(f"{outcome.too_long:,} skipped: longer than the model takes.")
    if outcome.failed:
        lines.append(f"{outcome.failed:,} failed, like: {'; '.join(outcome.failures)}")
    if outcome.latest_seconds >= 1:
        lines.append(
            f"The engine was slower than the trace: requests came up to {words.duration(outcome.latest_seconds)} late."
        )
    prompt = outcome.prompt_tokens
    lines += [
        f"{LOOKS[tier].label:>12}  {words.percent(tokens / prompt)}"
        for tier, tokens in outcome.hit_tokens.items()
        if prompt
    ]
    return lines
