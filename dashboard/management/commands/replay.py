"""`manage.py replay FILE --tiers gpu=1000,cpu=2GiB`: a trace through the real tiers, into the series.

Runs here, with a progress bar; `--background` leaves it to the worker. The trace is taken into TIERSCOPE_HOME/traces,
so that whoever goes on with it finds it there. `--real` sends the texts of a trace to /v1 instead.
"""

import argparse
import json
import time
from argparse import ArgumentParser
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from tqdm import tqdm

from dashboard.management.refusals import sentence
from dashboard.models import Replay, TierSetting
from dashboard.real_replay import outcome_lines, send_trace
from dashboard.replay_sizes import DEFAULT_BYTES_A_TOKEN, parse_replay_size
from dashboard.replay_words import result_lines
from dashboard.sample_sender import SendError
from dashboard.services.replaying import WORKER, take_turn
from dashboard.services.replays import TIERS, TierWish, Wanted, cancel, create, free_name, resume
from dashboard.sizes import parse_size
from dashboard.trace_folder import TraceFileError, take_in

TRACE = "trace"
_TURN_SECONDS = 1
_LOOK_SECONDS = 0.5
_ENDED = (Replay.State.DONE, Replay.State.CANCELLED, Replay.State.FAILED)


class Command(BaseCommand):
    help = "Replays a trace through tiers of chosen sizes; what each tier served is on the charts, as of an engine."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, nargs="?", help="A trace, as for `whatif`; left out with --resume.")
        parser.add_argument("--tiers", type=_sizes, help="gpu=SIZE,cpu=SIZE,…: blocks, “2M tokens” or “2 GiB”.")
        parser.add_argument("--mode", default="write_back", help="One for all slower tiers, or cpu=…,disk=….")
        parser.add_argument("--policy", default="lru", help="One for all tiers, or gpu=…,cpu=….")
        parser.add_argument("--store-after-hits", type=int, default=2, help="For write_selective (default: 2).")
        parser.add_argument("--tenant-quota", type=float, default=1.0, help="A tenant's largest share (default: 1).")
        parser.add_argument("--name", help="How pages call it (default: the file's name).")
        parser.add_argument("--form", choices=Replay.Form.values, default="auto", help="Of the trace (default: auto).")
        parser.add_argument(
            "--starts-at", type=_moment, metavar="TIME", help="ISO 8601 with a zone, or “trace”: as the trace tells."
        )
        parser.add_argument(
            "--bytes-per-token",
            type=_bytes,
            default=DEFAULT_BYTES_A_TOKEN,
            help=f"What a token's keys and values take (default: {DEFAULT_BYTES_A_TOKEN:,}, SmolLM2-135M in fp32).",
        )
        parser.add_argument("--background", action="store_true", help="Leave it to the worker.")
        parser.add_argument("--wait", action="store_true", help="With --background: until it has ended.")
        parser.add_argument("--resume", metavar="NAME", help="Goes on with one that was cancelled or failed.")
        parser.add_argument("--json", action="store_true", help="One JSON object at the end.")
        real = parser.add_argument_group("sending a trace with texts to the engine that runs")
        real.add_argument("--real", action="store_true", help="To /v1, like any client; no tiers are simulated.")
        real.add_argument("--speed", type=_positive, default=1.0, help="10: ten times as fast (default: 1).")
        real.add_argument("--max-tokens", type=int, default=64, help="Of an answer, at most (default: 64).")
        real.add_argument("--at-once", type=int, default=8, help="Requests under way, at most (default: 8).")
        real.add_argument("--requests", type=int, help="Only the first so many.")
        real.add_argument("--tokenizer", type=Path, help="To count the answers' tokens; default: the model's.")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["real"]:
            self._send(options)
            return
        replay = _resumed(options["resume"]) if options["resume"] else _created(options)
        if not options["background"]:
            _run_here(replay)
        elif options["wait"]:
            _wait(replay)
        replay.refresh_from_db()
        self._tell(replay, as_json=options["json"])
        if replay.state == Replay.State.FAILED:
            raise CommandError(replay.error)

    def _send(self, options: dict[str, Any]) -> None:
        if options["file"] is None or not (0 < options["at_once"] <= 256 and options["max_tokens"] > 0):
            raise CommandError("--real needs a trace, --at-once from 1 to 256 and --max-tokens from 1 on.")
        try:
            outcome = send_trace(options["file"], options)
        except KeyboardInterrupt:
            raise CommandError("Interrupted; what was under way was broken off.") from None
        except OSError as error:
            name = error.filename or options["file"]
            raise CommandError(f"{name} cannot be read: {error.strerror or error}.") from None
        except (SendError, ValueError) as error:
            raise CommandError(f"Nothing more was sent: {error}") from None
        self.stdout.write(json.dumps(asdict(outcome)) if options["json"] else "\n".join(outcome_lines(outcome)))
        if outcome.failed:
            raise CommandError(f"{outcome.failed:,} of {outcome.sent:,} requests failed.")

    def _tell(self, replay: Replay, *, as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps(told_of(replay)))
        elif replay.state == Replay.State.WAITING:
            self.stdout.write(f"Replay {replay.name} waits for the worker.")
        elif replay.counts:
            self.stdout.write("\n".join(result_lines(replay)))


def told_of(replay: Replay) -> dict[str, Any]:
    """Of a replay, for scripts."""
    return {
        "name": replay.name,
        "state": replay.state,
        "file": replay.file_name,
        "starts_at": replay.starts_at,
        "ends_at": replay.ends_at,
        "block_tokens": replay.extent.get("block_tokens"),
        "blocks": replay.blocks,
        "trace_requests": replay.num_requests,
        "wrong_lines": replay.num_problems,
        **replay.counts,
        "hit_rate": _rate(replay),
    }


def _rate(replay: Replay) -> float | None:
    prompt = replay.counts.get("prompt_tokens")
    return sum(replay.hit_tokens.values()) / prompt if prompt else None


def _created(options: dict[str, Any]) -> Replay:
    if options["file"] is None or not options["tiers"]:
        raise CommandError("Name a trace and --tiers, or a replay to --resume.")
    try:
        file_name = take_in(options["file"])
        wanted = Wanted(
            name=options["name"] or free_name(file_name.partition(".")[0]),
            file_name=file_name,
            tiers=_wishes(options),
            form=options["form"],
            bytes_a_token=options["bytes_per_token"],
            starts_at=None if options["starts_at"] == TRACE else options["starts_at"],
            keeps_times=options["starts_at"] == TRACE,
        )
        return create(wanted, author=None, now=timezone.now(), worker="" if options["background"] else WORKER)
    except ValidationError as error:
        raise CommandError(sentence(error)) from None
    except TraceFileError as error:
        raise CommandError(str(error)) from None
    except OSError as error:
        raise CommandError(f"{options['file']} cannot be read: {error.strerror or error}.") from None


def _resumed(name: str) -> Replay:
    replay = Replay.objects.filter(source__name=name).first()
    if replay is None:
        raise CommandError(f"There is no replay “{name}”.")
    if replay.state == Replay.State.DONE:
        raise CommandError(f"Replay {name} is done.")
    resume(replay)
    return replay


def _run_here(replay: Replay) -> None:
    """Ctrl-C cancels it, so that nobody else goes on."""
    try:
        with tqdm(total=100, desc=replay.name, bar_format="{desc}: {bar} {n:.0f} %") as bar:
            while _goes_on(replay):
                if not take_turn(replay.pk, clock=timezone.now, seconds=_TURN_SECONDS):
                    time.sleep(_LOOK_SECONDS)  # a worker has it
                replay.refresh_from_db()
                bar.update(100 * replay.share - bar.n)
    except KeyboardInterrupt:
        cancel(replay, now=timezone.now())
        raise CommandError(f"Cancelled; `manage.py replay --resume {replay.name}` goes on with it.") from None


def _wait(replay: Replay) -> None:
    with tqdm(total=100, desc=replay.name, bar_format="{desc}: {bar} {n:.0f} %") as bar:
        while _goes_on(replay):
            time.sleep(_LOOK_SECONDS)
            bar.update(100 * replay.share - bar.n)


def _goes_on(replay: Replay) -> bool:
    try:
        replay.refresh_from_db()
    except Replay.DoesNotExist:
        raise CommandError("Somebody has removed it meanwhile.") from None
    return replay.state not in _ENDED


def _wishes(options: dict[str, Any]) -> list[TierWish]:
    modes = _by_tier(options["mode"], TierSetting.WriteMode.values, "mode")
    policies = _by_tier(options["policy"], TierSetting.Policy.values, "policy")
    hits = options["store_after_hits"]
    return [
        TierWish(tier, parse_replay_size(size), policies[tier], modes[tier], hits, options["tenant_quota"])
        for tier, size in options["tiers"].items()
    ]


def _by_tier(text: str, known: list[str], what: str) -> dict[str, str]:
    """ "arc", or "gpu=lru,cpu=arc" where tiers that are not named have the first of `known`."""
    found = dict.fromkeys(TIERS, known[0]) if "=" in text else dict.fromkeys(TIERS, text)
    for part in text.split(",") if "=" in text else ():
        tier, _, value = part.partition("=")
        found[tier.strip()] = value.strip()
    wrong = {*found.values()} - {*known} or {*found} - {*TIERS}
    if wrong:
        raise CommandError(
            f"“{sorted(wrong)[0]}” is no {what} or tier; expected {', '.join(known)}, or cpu=… for each."
        )
    return found


def _sizes(text: str) -> dict[str, str]:
    """ "gpu=1000,cpu=2 GiB" """
    found: dict[str, str] = {}
    for part in text.split(","):
        tier, is_given, size = part.partition("=")
        if tier.strip() not in TIERS or not is_given:
            raise argparse.ArgumentTypeError(
                f"“{part.strip()[:40]}” is no tier with a size; expected gpu=1000,cpu=2GiB"
            )
        try:
            parse_replay_size(size)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
        found[tier.strip()] = size
    return found


def _positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1e6:
        raise argparse.ArgumentTypeError(f"“{text[:40]}” is no speed; expected a number above 0, like 10")
    return number


def _bytes(text: str) -> int:
    try:
        return parse_size(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _moment(text: str) -> int | str:
    if text == TRACE:
        return text
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"“{text[:40]}” is no time; expected one like 2026-01-31T12:00+01:00"
        ) from None
    return int((moment if moment.tzinfo else timezone.make_aware(moment)).timestamp())
