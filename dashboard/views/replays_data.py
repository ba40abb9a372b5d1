"""`/api/replays.json` and what is done to replays and traces, for staff: cancel, resume, remove, compare, upload."""

import time
from collections.abc import Callable
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode

from dashboard import trace_folder
from dashboard.charts import words
from dashboard.charts.palette import COMPUTED, LOOKS
from dashboard.charts.replays import compared_figure, compared_rows, unequal
from dashboard.models import Replay
from dashboard.replay_words import progress_in_words, remarks, tiers_in_words
from dashboard.selectors import replays
from dashboard.services.replays import GOING_ON, cancel, remove, resume
from dashboard.trace_folder import TraceFileError, add_piece, trace_files
from dashboard.views.answers import json_view
from dashboard.views.params import BadParameterError, page_number
from dashboard.zone import in_words


@json_view(staff=True)
def replays_json(request: HttpRequest) -> dict[str, Any]:
    """A page of them, newest first, and the traces that lie there."""
    files = [{"name": each.name, "size": trace_folder.size_in_words(each)} for each in trace_files()]
    page = replays.replay_page(page_number(request.GET))
    return {
        "replays": [_row(replay) for replay in page.rows],
        "page": page.number,
        "num_pages": page.num_pages,
        "files": files,
    }


_ACTIONS: dict[str, Callable[[Replay], Any]] = {
    "cancel": lambda replay: cancel(replay, now=timezone.now()),
    "resume": resume,
    "remove": remove,
}


@json_view("POST", staff=True)
def replay_action(request: HttpRequest, replay_id: int, action: str) -> dict[str, Any]:
    replay = Replay.objects.select_related("source").filter(pk=replay_id).first()
    if replay is None or action not in _ACTIONS:
        raise BadParameterError("There is no such replay; it may have been removed.")
    _ACTIONS[action](replay)
    return {}


@json_view(staff=True)
def compared_json(request: HttpRequest) -> dict[str, Any]:
    """Those in the address, `ids=3,1`, side by side."""
    parts = request.GET.get("ids", "").split(",")[: replays.MOST_COMPARED]
    chosen = replays.chosen([int(part) for part in parts if part.isascii() and part.isdecimal() and len(part) < 16])
    if not chosen:
        raise BadParameterError("None of these replays has counted anything yet.")
    now = time.time()
    names = [replay.name for replay in chosen]
    return {
        "names": names,
        "rows": compared_rows(chosen),
        "note": unequal(chosen),
        "figure": compared_figure(names, [replays.rates_over_time(replay, now) for replay in chosen]),
    }


@json_view("POST", staff=True)
def trace_upload(request: HttpRequest, name: str) -> dict[str, Any]:
    """The next piece of a file: `offset` bytes are there already, `last` is 1 with the last one."""
    offset = request.GET.get("offset", "")
    if not (offset.isascii() and offset.isdecimal() and len(offset) < 16):
        raise BadParameterError("offset has to be the number of bytes that are there already.")
    try:
        return {"num_bytes": add_piece(name, int(offset), request.body, is_last=request.GET.get("last") == "1")}
    except TraceFileError as error:
        raise BadParameterError(str(error)) from None


@json_view("POST", staff=True)
def trace_remove(request: HttpRequest, name: str) -> dict[str, Any]:
    if Replay.objects.filter(file_name=name, state__in=GOING_ON).exists():
        raise BadParameterError(f"A replay of “{name}” is waiting or running; cancel it first.")
    try:
        trace_folder.remove(name)
    except TraceFileError as error:
        raise BadParameterError(str(error)) from None
    return {}


def _row(replay: Replay) -> dict[str, Any]:
    prompt = replay.counts.get("prompt_tokens", 0)
    hits = {tier: tokens for tier, tokens in replay.hit_tokens.items() if tokens}
    rate = sum(hits.values()) / prompt if prompt else None
    shares = {**hits, COMPUTED: replay.counts.get("computed_tokens", 0)} if prompt else {}
    return {
        "id": replay.pk,
        "name": replay.name,
        "file": replay.file_name,
        "tiers": tiers_in_words(replay),
        "state": replay.state,
        "share": round(replay.share, 4),
        "read_share": round(replay.read_share, 4),
        "progress": progress_in_words(replay),
        "error": replay.error,
        "hit_rate": words.percent(rate),
        "origins": [
            {"origin": origin, "label": LOOKS[origin].label, "percent": round(100 * tokens / prompt, 3)}
            for origin, tokens in shares.items()
        ],
        "made": f"{in_words(replay.created_at)}{f', {replay.author.get_username()}' if replay.author else ''}",
        "remarks": remarks(replay),
        "problems": replay.problems,
        "can_be_compared": bool(replay.counts),
        "is_going_on": replay.state in GOING_ON,
        "can_go_on": replay.state in (Replay.State.CANCELLED, Replay.State.FAILED),
        "links": _links(replay),
    }


def _links(replay: Replay) -> list[dict[str, str]]:
    """To the pages, with engine and period chosen; none before anything is there."""
    lies = replays.stretch(replay)
    if lies is None or not replay.counts:
        return []
    asked: dict[str, str | int] = {"engine": replay.name, "start": lies[0], "end": lies[1]}
    query = urlencode(asked)
    pages = {"overview": "Overview", "tiers": "Tiers", "what-if": "What if"}
    return [{"text": text, "url": f"{reverse(page)}?{query}"} for page, text in pages.items()]
