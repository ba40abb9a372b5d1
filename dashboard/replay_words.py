"""Replays in words, for the page and the command. Reads nothing."""

from dashboard.charts import words
from dashboard.charts.palette import LOOKS
from dashboard.models import Replay
from dashboard.replay_sizes import ReplaySize
from dashboard.tier_modes import modes_in_words


def tiers_in_words(replay: Replay) -> list[str]:
    """Each tier as it was asked for: "gpu 1,000 blocks, LRU", "cpu 2 GiB (2,912 blocks), LRU, write back"."""
    return [_tier(told, replay.blocks.get(told["tier"])) for told in replay.tiers]


def _tier(told: dict[str, object], num_blocks: int | None) -> str:
    size = ReplaySize(int(str(told["amount"])), str(told["unit"]))
    blocks = f" ({num_blocks:,} blocks)" if num_blocks is not None and size.unit != "blocks" else ""
    modes = modes_in_words(str(told["tier"]), {**told, "load": "always"}).replace(", loaded always", "")
    return f"{told['tier']} {size.in_words()}{blocks}, {modes}"


def result_lines(replay: Replay) -> list[str]:
    """What came of it, for a terminal."""
    counts = replay.counts
    prompt = counts["prompt_tokens"]
    lines = [f"{counts['requests']:,} of {replay.num_requests or 0:,} requests, {prompt:,} prompt tokens"]
    lines += [
        f"{LOOKS[tier].label:>12}  {words.percent(tokens / prompt if prompt else None):>8}  {tokens:,} tokens"
        for tier, tokens in replay.hit_tokens.items()
    ]
    lines.append(f"{'computed':>12}  {words.percent(counts['computed_tokens'] / prompt if prompt else None):>8}")
    return lines + remarks(replay)


def progress_in_words(replay: Replay) -> str:
    """ "waiting for the worker", "reading the trace: 12 %", "3,400 of 12,031 requests" """
    if replay.num_requests is not None:
        return f"{replay.num_done:,} of {_many(replay.num_requests, 'request')}"
    return f"reading the trace: {100 * replay.read_share:.0f} %" if replay.started_at else "waiting for the worker"


def remarks(replay: Replay) -> list[str]:
    """What one should know of its numbers, in sentences."""
    told = []
    if too_large := replay.counts.get("too_large"):
        told.append(
            f"{_many(too_large, 'request')} had more blocks than the gpu tier: read what was there, left nothing there."
        )
    if replay.num_problems:
        told.append(
            f"{_many(replay.num_problems, 'line')} of the trace could not be read and {_was(replay.num_problems)} left "
            "out."
        )
    if replay.extent and not replay.extent["has_times"]:
        told.append("The trace tells no times: its requests lie one a second.")
    return told


def _many(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' if number != 1 else ''}"


def _was(number: int) -> str:
    return "was" if number == 1 else "were"
