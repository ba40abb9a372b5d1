"""Puts an engine together from its parts: model, gpu pool, tiers. Knows nothing about who hosts it."""

import time
from collections.abc import Callable
from dataclasses import replace

import torch

from engine.engine import Engine
from engine.engine_config import Device, EngineConfig
from engine.loader import LoadedModel
from engine.model import LlamaModel
from engine.model_runner import ModelRunner
from engine.recording import Recording
from engine.reuse import Reuse
from tiers import CacheConfig, CudaPool, MachineLimits, MemoryPool, SlabSpec, Tier, TieredCache, warm_up

REMOTE_PATIENCE_SECONDS = 3.0


def resolve_device(device: Device) -> torch.device:
    """Where the model runs: "auto" is CUDA where there is a GPU. Raises ValueError where "cuda" is not to be had."""
    has_cuda = torch.cuda.is_available()
    if device == "cuda" and not has_cuda:
        raise ValueError("The device is set to cuda, but torch finds no CUDA GPU here; set it to cpu or auto.")
    return torch.device("cuda" if has_cuda and device != "cpu" else "cpu")


def build_engine(
    config: EngineConfig,
    loaded: LoadedModel,
    limits: MachineLimits,
    *,
    clock: Callable[[], float] = time.monotonic,
    reuse: Reuse | None = None,
    recording: Recording | None = None,
) -> Engine:
    """An engine over a loaded model, not started yet. Raises RefusedError where the machine cannot give the sizes."""
    warm_up()
    model = loaded.model
    slab = model.slab(config.block_size)
    config = replace(config, max_model_len=min(config.max_model_len, model.config.max_position))
    pool, kv = gpu_pool(slab, config.tiers[0].capacity_bytes // slab.num_bytes, model)
    cache_config = CacheConfig(config.block_size, slab, loaded.fingerprint, config.tiers)
    cache = TieredCache(cache_config, pool, clock=clock, memory=limits)
    _read_remote(cache, clock)
    runner = ModelRunner(model, kv)
    return Engine(config, runner, cache, eos_ids=loaded.eos_ids, clock=clock, reuse=reuse, recording=recording)


def _read_remote(cache: TieredCache, clock: Callable[[], float]) -> None:
    """Before anybody is told what the tiers hold. A server that is away or slow is not waited for."""
    patience_ends_at = clock() + REMOTE_PATIENCE_SECONDS
    while clock() < patience_ends_at:
        cache.poll()
        health = cache.stats()[Tier.REMOTE].health
        if health.is_known or not health.is_up:
            return
        time.sleep(0.005)


def gpu_pool(
    slab: SlabSpec, num_blocks: int, model: LlamaModel
) -> tuple[MemoryPool | CudaPool, Callable[[], torch.Tensor]]:
    """The pool that attention reads, on the model's device, and where its tensor is now (CUDA's moves at a resize)."""
    if model.device.type == "cuda":
        cuda = CudaPool(slab, model.dtype, num_blocks, model.device)
        return cuda, lambda: cuda.tensor
    host = MemoryPool(slab, num_blocks)
    tensor = host.as_tensor(model.dtype)
    return host, lambda: tensor
