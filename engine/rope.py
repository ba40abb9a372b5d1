"""Rotary angles by position. Knows nothing about queries, keys or batches."""

import math

import torch

from engine.config import ModelConfig, RopeScaling


def rotations(config: ModelConfig) -> torch.Tensor:
    """complex64 [max_position, head_dim / 2]: what a pair of a query or key at a position is multiplied with.

    Angles are fp32 products, as in transformers: fp64 would differ from every other implementation at long contexts.
    """
    exponents = torch.arange(0, config.head_dim, 2, dtype=torch.float32) / config.head_dim
    frequencies = 1.0 / config.rope_base**exponents
    if config.rope_scaling is not None:
        frequencies = _stretched(frequencies, config.rope_scaling)
    angles = torch.outer(torch.arange(config.max_position, dtype=torch.float32), frequencies)
    return torch.complex(angles.cos(), angles.sin())


def _stretched(frequencies: torch.Tensor, scaling: RopeScaling) -> torch.Tensor:
    """Long waves are slowed by `factor`, short ones stay, those between are blended."""
    turns = scaling.original_max_position * frequencies / (2 * math.pi)
    share = (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor)
    share = share.clamp(0, 1)
    return share * frequencies + (1 - share) * frequencies / scaling.factor
