"""What a Llama-family model looks like. Knows nothing about weights, files or devices."""

from dataclasses import dataclass


@dataclass(frozen=True)
class RopeScaling:
    """Llama 3's stretching of low rotary frequencies beyond the context that the model was first trained with."""

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_max_position: int

    def __post_init__(self) -> None:
        if self.factor < 1 or self.original_max_position < 1 or not 0 < self.low_freq_factor < self.high_freq_factor:
            raise ValueError(
                f"RoPE scaling {self} is not usable: expected factor >= 1, 0 < low_freq_factor < high_freq_factor "
                "and a positive original context."
            )


@dataclass(frozen=True)
class ModelConfig:
    """Shapes and constants of one model. `max_position` is the context in tokens; `fingerprint` names the weights."""

    num_layers: int
    hidden_size: int
    intermediate_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    vocab_size: int
    max_position: int
    rope_base: float
    rms_eps: float
    tie_embeddings: bool
    fingerprint: str
    rope_scaling: RopeScaling | None = None

    def __post_init__(self) -> None:
        for field in [
            "num_layers",
            "hidden_size",
            "intermediate_size",
            "num_heads",
            "num_kv_heads",
            "head_dim",
            "vocab_size",
            "max_position",
        ]:
            if getattr(self, field) < 1:
                raise ValueError(f"{field} is {getattr(self, field)}; expected at least 1.")
        if self.num_heads % self.num_kv_heads:
            raise ValueError(f"{self.num_heads} query heads cannot share {self.num_kv_heads} key/value heads evenly.")
        if self.head_dim % 2:
            raise ValueError(f"head_dim is {self.head_dim}; rotary embeddings need an even number.")
        if self.rope_base <= 1 or self.rms_eps <= 0:
            raise ValueError(f"rope_base {self.rope_base} must be above 1 and rms_eps {self.rms_eps} above 0.")
        if not self.fingerprint:
            raise ValueError("The model has no fingerprint; blocks of different weights could not be told apart.")

    @property
    def q_size(self) -> int:
        """Width of all query heads together."""
        return self.num_heads * self.head_dim

    @property
    def kv_size(self) -> int:
        """Width of all key heads together; the same for the values."""
        return self.num_kv_heads * self.head_dim
