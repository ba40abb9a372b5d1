"""The one module of dashboard that imports the engine, and only inside an engine worker.

Turns settings into an engine, jobs into its requests, its events into stream events, and its state into plain numbers.
"""

import queue
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from secrets import token_hex
from typing import Any, cast

from django.conf import settings

from dashboard.engine_hosting import Progress
from dashboard.engine_metrics import EngineCollector, Exposition
from dashboard.engine_relay import HostError
from dashboard.jobs import Job
from dashboard.models import TierSetting
from dashboard.secret_files import read_or_create
from dashboard.selectors.tenants import counted_tenants
from dashboard.sizes import format_size
from dashboard.streams import Event
from dashboard.tenants import COMMON, root_salt, shown
from dashboard.tier_modes import Modes, modes_in_words, modes_of
from dashboard.waiting import waited_for
from engine.build import build_engine, resolve_device
from engine.chat_template import ChatTemplateError
from engine.defaults import default_tier_sizes
from engine.engine import STOPPED, Engine
from engine.engine_config import Device, EngineConfig
from engine.loader import LoadedModel, load
from engine.request import BusyError, GenerationRequest, RequestError, TooLongError, Usage
from engine.reuse import LiveReuse, NoReuse, Reuse
from engine.reuse_keeper import ReuseKeeper
from engine.sampling import SamplingParams
from engine.stats import EngineSnapshot
from engine.text import TextDelta, TextEvent, TextFinished, TextGenerator
from engine.tokenizer import StreamDecoder
from engine.trace_folder import TraceFolder
from engine.trace_writer import NoTraceWriter, TraceWriter
from tiers import (
    Compression,
    LoadChoice,
    MachineLimits,
    Policy,
    RefusedError,
    Tier,
    TierConfig,
    TierStats,
    WriteMode,
    root_key,
)
from tiers.block_format import stored_bytes
from tiers.whatif.shards_curve import ReuseCurve

__all__ = ["EngineHost", "EngineSnapshot", "load_host"]

_ALIVE_SECONDS = 3.0
# Commands run between two steps; a step is one prefill chunk, far below this on any machine.
_COMMAND_SECONDS = 60.0


def load_host(name: str, progress: Progress) -> "EngineHost":
    """Loads the model, builds the engine with the sizes that were last asked for, and starts it.

    Raises ValueError, OSError or RefusedError with a sentence.
    """
    path = Path(settings.MODEL_PATH) if settings.MODEL_PATH else None
    device = resolve_device(cast(Device, settings.DEVICE))
    cache_dir = settings.TIERSCOPE_HOME / "models"
    loaded = load(path, cache_dir=cache_dir, device=device, progress=progress)
    progress("Making room for the tiers; the first start compiles their code, for half a minute or more", 0.95)
    limits = MachineLimits()
    config = EngineConfig(
        name=name,
        tiers=_tiers(name, loaded, limits),
        block_size=settings.BLOCK_SIZE,
        tenants=(COMMON, *counted_tenants(name)),
        max_tenants=settings.MAX_TENANTS + 1,
    )
    keeper, recorder = _reuse_keeper(name, loaded), _recorder(name, loaded)
    engine = build_engine(config, loaded, limits, reuse=_reuse(keeper), recording=recorder.recording())
    engine.start()
    keeper.start(engine.reuse_sample)
    recorder.start()
    return EngineHost(name, engine, loaded, keeper.stop, recorder.stop)


def _reuse_keeper(name: str, loaded: LoadedModel) -> ReuseKeeper:
    """Beside the disk tier, for blocks of this model, size and type only."""
    dtype = loaded.model.slab(settings.BLOCK_SIZE).dtype
    identity = root_key(fingerprint=loaded.fingerprint, salt="", block_size=settings.BLOCK_SIZE, dtype=dtype)
    return ReuseKeeper(_folder(name) / "reuse-order", identity)


def _reuse(keeper: ReuseKeeper) -> Reuse:
    if not settings.REUSE_CURVE:
        return NoReuse()
    curve = ReuseCurve(settings.BLOCK_SIZE)
    if (sample := keeper.load()) is not None:
        curve.restore(sample)
    return LiveReuse(curve)


def _recorder(name: str, loaded: LoadedModel) -> TraceWriter | NoTraceWriter:
    """One secret for all engines of a home, so that what they record can be read together."""
    if not settings.RECORD_TRACE_BYTES:
        return NoTraceWriter()
    secret = read_or_create(settings.TIERSCOPE_HOME / "trace-secret", lambda: token_hex(32)).encode()
    folder = TraceFolder(settings.TIERSCOPE_HOME / "traces" / f"recorded-{name}", settings.RECORD_TRACE_BYTES)
    return TraceWriter(folder, secret=secret, model_name=loaded.name, block_size=settings.BLOCK_SIZE)


def _folder(name: str) -> Path:
    folder: Path = settings.TIERSCOPE_HOME / "tiers" / name
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _tiers(name: str, loaded: LoadedModel, limits: MachineLimits) -> tuple[TierConfig, ...]:
    sizes, folder = starting_sizes(name, loaded, limits), _folder(name)
    return tuple(
        TierConfig(
            tier,
            sizes[tier],
            path=folder if tier is Tier.DISK else None,
            url=settings.REMOTE_URL if tier is Tier.REMOTE else None,
            ttl_seconds=settings.REMOTE_TTL_SECONDS,
            compression=Compression(settings.TIER_COMPRESSION.get(tier, "none")),
        )
        for tier in Tier
        if tier in sizes
    )


def starting_sizes(name: str, loaded: LoadedModel, limits: MachineLimits) -> dict[Tier, int]:
    """What was asked for last; where nothing was, the environment; else what suits the machine.

    Never more than the machine has: the control thread then tells why it is less than asked for. What a server has is
    known once it has answered; without one there is no remote tier.
    """
    sizes = dict(default_tier_sizes(loaded.model.slab(settings.BLOCK_SIZE), limits.max_bytes))
    sizes |= {Tier(tier): num_bytes for tier, num_bytes in settings.TIER_BYTES.items() if num_bytes is not None}
    for row in TierSetting.objects.filter(engine=name, cache_tier__in=[tier.value for tier in sizes]):
        sizes[Tier(row.cache_tier)] = row.desired_bytes
    remote = {Tier.REMOTE: sizes.pop(Tier.REMOTE)}
    sizes = {tier: min(num_bytes, limits.max_bytes(tier)) for tier, num_bytes in sizes.items()}
    return sizes | (remote if settings.REMOTE_URL else {})


def _remote_reason(stats: TierStats, told: dict[str, Any]) -> str:
    """Why the tier is not what was asked for; "" where it is."""
    if not stats.is_configured:
        return "This engine has no server for a remote tier: TIERSCOPE_REMOTE_URL is not set."
    if not stats.health.is_up:
        return f"Its server cannot be used, so nothing is read or stored: {stats.health.last_error}."
    if stats.capacity_bytes > told["max_bytes"] > 0:
        return f"No more than {format_size(told['max_bytes'])} can be stored now: {told['max_reason']}."
    return ""


class EngineHost:
    """A started engine as the worker sees it: tiers by name, sizes in bytes, events as plain JSON."""

    def __init__(self, name: str, engine: Engine, loaded: LoadedModel, *on_stopped: Callable[[], None]) -> None:
        self.name = name
        self._on_stopped = on_stopped
        self._engine = engine
        self._loaded = loaded
        self._texts = TextGenerator(engine, loaded)
        self._compressions = {config.tier: config.compression for config in engine.config.tiers}
        self._slab = loaded.model.slab(engine.config.block_size)
        self._modes = {config.tier.value: modes_of(config) for config in engine.config.tiers}
        self._exposition = Exposition(
            EngineCollector(engine.snapshot, engine=name, model_name=loaded.name, block_size=engine.config.block_size)
        )

    # -- requests ----------------------------------------------------------------------------------------------------
    def generate(self, job: Job) -> Generator[Event, None, None]:
        """ "token" events and one "done"; "alive" whenever nothing happened for 3 s. Closing it aborts the request."""
        prompt = self._prompt(job)
        events: queue.SimpleQueue[TextEvent] = queue.SimpleQueue()
        request = GenerationRequest(
            job.run_id,
            prompt,
            self._sampling(job, len(prompt)),
            salt=root_salt(job.tenant, job.cache_salt),
            tenant=shown(job.tenant),
        )
        self._submit(request, events)
        try:
            for batch in waited_for(events, _ALIVE_SECONDS):
                if text := "".join(event.text for event in batch if isinstance(event, TextDelta)):
                    yield {"type": "token", "text": text}
                if not batch:
                    yield {"type": "alive"}
                elif isinstance(batch[-1], TextFinished):
                    yield self._done(job, prompt, batch[-1])
                    return
        finally:
            self._engine.abort(job.run_id)  # no effect on a request that has ended

    def abort(self, run_id: str) -> None:
        self._engine.abort(run_id)

    def stop(self, drain_seconds: float, flush_seconds: float) -> None:
        self._engine.stop(drain_seconds, flush_seconds)
        for stop in self._on_stopped:
            stop()

    # -- tiers -------------------------------------------------------------------------------------------------------
    def block_bytes(self, tier: str) -> int:
        if tier not in (Tier.DISK, Tier.REMOTE):
            return self._slab.num_bytes
        return stored_bytes(self._slab, self._compression(tier))

    def _compression(self, tier: str) -> Compression:
        return self._compressions.get(Tier(tier), Compression.NONE)

    def capacities(self) -> dict[str, int]:
        tiers = self._engine.snapshot().cache.tiers
        return {tier.value: stats.capacity_bytes for tier, stats in tiers.items() if stats.is_configured}

    def resize(self, tier: str, num_bytes: int) -> str:
        try:
            self._engine.resize(Tier(tier), num_bytes).result(_COMMAND_SECONDS)
        except RefusedError as refused:
            return str(refused)
        return ""

    def modes(self, tier: str) -> Modes:
        return self._modes[tier]

    def configure(self, tier: str, modes: Modes) -> str:
        """All of them or, with the sentence that says why, none."""
        try:
            self._engine.configure(
                Tier(tier),
                policy=Policy(modes["policy"]),
                write_mode=WriteMode(modes["write_mode"]),
                store_after_hits=modes["store_after_hits"],
                load=LoadChoice(modes["load"]),
                tenant_quota=modes["tenant_quota"],
            ).result(_COMMAND_SECONDS)
        except (RefusedError, ValueError) as refused:
            return f"{refused} The tier goes on with {modes_in_words(tier, self._modes[tier])}."
        self._modes[tier] = modes
        return ""

    def clear(self, tier: str) -> int:
        return self._engine.clear(Tier(tier)).result(_COMMAND_SECONDS)

    def describe(self) -> dict[str, Any]:
        snapshot = self._engine.snapshot()
        return {
            "model_name": self._loaded.name,
            "max_request_tokens": self._engine.max_request_tokens,
            "exposition": self._exposition.text(),
            "tiers": {tier.value: self._tier(tier, stats, snapshot) for tier, stats in snapshot.cache.tiers.items()},
            "requests_running": snapshot.num_running,
            "requests_waiting": snapshot.num_waiting,
        }

    def _tier(self, tier: Tier, stats: TierStats, snapshot: EngineSnapshot) -> dict[str, Any]:
        told: dict[str, Any] = {
            "capacity_bytes": stats.capacity_bytes,
            "used_bytes": stats.used_bytes,
            "resident_tokens": stats.resident_tokens,
            "resident_blocks": stats.resident_blocks,
            "block_bytes": self.block_bytes(tier),
            "block_tokens": self._engine.config.block_size,
            "modes": self._modes.get(tier, {}),
            "warning": " ".join(self._warnings(tier, stats)),
        }
        if stats.is_configured:
            told["max_bytes"], told["max_reason"] = self._engine.largest_size(tier)
        if tier is Tier.REMOTE:
            told["reason"] = _remote_reason(stats, told)
        if tier is Tier.GPU:
            floor = snapshot.gpu_floor
            told |= {"min_bytes": floor.num_bytes, "min_reason": floor.reason}
        return told

    def _warnings(self, tier: Tier, stats: TierStats) -> Iterator[str]:
        if stats.health.warning:
            yield stats.health.warning
        if (compression := self._compression(tier)) is not Compression.NONE:
            yield f"Its blocks are kept as {compression}: a hit may change an answer a little."

    # -- jobs and events ---------------------------------------------------------------------------------------------
    def _submit(self, request: GenerationRequest, events: "queue.SimpleQueue[TextEvent]") -> None:
        try:
            self._texts.submit(request, events.put)
        except BusyError as busy:
            raise HostError(503, str(busy), code="engine_busy", is_retriable=True) from None
        except RequestError as error:
            raise HostError(400, str(error), code=error.code) from None

    def _prompt(self, job: Job) -> list[int]:
        if job.prompt_token_ids is not None:
            return self._checked(job.prompt_token_ids)
        try:
            if job.prompt is not None:
                return self._texts.prompt_token_ids(job.prompt)
            return self._texts.chat_token_ids(job.messages or [])
        except (ChatTemplateError, TooLongError) as error:
            raise HostError(400, str(error), code=error.code) from None

    def _checked(self, token_ids: list[int]) -> list[int]:
        vocab_size = self._loaded.model.config.vocab_size
        if any(not 0 <= token_id < vocab_size for token_id in token_ids):
            raise HostError(400, f"A token id is outside of 0 to {vocab_size - 1:,}.", code="invalid_request")
        return token_ids

    def _sampling(self, job: Job, num_prompt: int) -> SamplingParams:
        told: dict[str, Any] = dict(job.sampling)
        room = self._engine.max_request_tokens - num_prompt
        told["max_tokens"] = told["max_tokens"] or max(1, room)
        told["stop"] = tuple(told["stop"])
        return SamplingParams(**told)

    def _done(self, job: Job, prompt: list[int], last: TextFinished) -> Event:
        usage = last.usage
        return {
            "type": "done",
            "finish_reason": last.finish_reason,
            "error": last.error,
            "is_retriable": last.error == STOPPED,
            "usage": {
                "prompt_tokens": usage.prompt_tokens,
                "hit_tokens": {tier.value: tokens for tier, tokens in usage.hit_tokens.items()},
                "computed_tokens": usage.computed_tokens,
                "generated_tokens": usage.generated_tokens,
                "slowest_tier": usage.slowest_tier and usage.slowest_tier.value,
                "ttft_seconds": usage.ttft_seconds,
            },
            "prompt": self._runs(prompt, usage) if job.return_prompt_tokens else None,
        }

    def _runs(self, prompt: list[int], usage: Usage) -> list[dict[str, Any]]:
        """The prompt's text in runs of tokens that came from the same tier; `cache_tier` None was computed."""
        decoder, start = StreamDecoder(self._loaded.tokenizer), 0
        runs: list[dict[str, Any]] = []
        for tier, num_tokens in usage.prompt_tiers:
            text = decoder.push(prompt[start : start + num_tokens])
            start += num_tokens
            runs.append({"text": text, "num_tokens": num_tokens, "cache_tier": tier and tier.value})
        if runs:
            runs[-1]["text"] += decoder.finish()
        return runs
