"""A Llama small enough to run thousands of times: random weights, bytes as tokens. Knows nothing about files."""

import torch
from tokenizers import AddedToken, decoders, models, pre_tokenizers
from tokenizers import Tokenizer as Backend

from engine.chat_template import ChatTemplate
from engine.config import ModelConfig
from engine.loader import LoadedModel
from engine.model import ForwardBatch, LlamaModel, SeqSlice
from engine.tokenizer import Tokenizer
from engine.weights import fuse, tensor_shapes

EOS_ID = 256
CHATML = (
    "{% for message in messages %}<{{ message['role'] }}>{{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


def tiny_config(**changes: object) -> ModelConfig:
    """2 layers, 32 wide, 4 query heads on 2 key/value heads, 256 bytes and an end as vocabulary."""
    values: dict[str, object] = {
        "num_layers": 2,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_heads": 4,
        "num_kv_heads": 2,
        "head_dim": 8,
        "vocab_size": 257,
        "max_position": 512,
        "rope_base": 10_000.0,
        "rms_eps": 1e-5,
        "tie_embeddings": True,
        "fingerprint": "tiny",
    }
    return ModelConfig(**(values | changes))  # type: ignore[arg-type]


def tiny_tensors(config: ModelConfig, seed: int = 0) -> dict[str, torch.Tensor]:
    """Random weights under Hugging Face's names; norms near 1."""
    generator = torch.Generator().manual_seed(seed)
    tensors = {name: torch.randn(shape, generator=generator) * 0.3 for name, shape in tensor_shapes(config).items()}
    return {name: tensor + 1 if tensor.dim() == 1 else tensor for name, tensor in tensors.items()}


def tiny_llama(config: ModelConfig | None = None, seed: int = 0) -> LlamaModel:
    config = config or tiny_config()
    return LlamaModel(config, fuse(config, tiny_tensors(config, seed), torch.device("cpu")))


def byte_tokenizer() -> Tokenizer:
    """Token n is byte n; 256 is <end>, special."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    # ByteLevel writes a byte as one visible character: the visible ones as themselves, the others from U+0100 on.
    visible = [char for char in alphabet if ord(char) < 256]
    hidden = [byte for byte in range(256) if chr(byte) not in visible]
    vocab = {char: ord(char) for char in visible} | {chr(256 + rank): byte for rank, byte in enumerate(hidden)}
    backend = Backend(models.BPE(vocab=vocab, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([AddedToken("<end>", special=True, normalized=False)])
    return Tokenizer(backend)


def tiny_model(seed: int = 0) -> LoadedModel:
    """What `engine.loader.load` gives, in a millisecond."""
    return LoadedModel("tiny", tiny_llama(seed=seed), byte_tokenizer(), ChatTemplate(CHATML), frozenset({EOS_ID}))


def empty_kv(model: LlamaModel, num_blocks: int, block_size: int = 4) -> torch.Tensor:
    """A pool full of NaN: whatever is read before it was written shows."""
    return torch.full((num_blocks, *model.slab(block_size).shape), float("nan"))


def one_sequence(token_ids: list[int], start: int, block_ids: list[int], rows: list[int] | None = None) -> ForwardBatch:
    """`token_ids` at positions from `start` on; logits of `rows`, all by default."""
    length = len(token_ids)
    return ForwardBatch(
        token_ids=torch.tensor(token_ids),
        positions=torch.arange(start, start + length),
        seqs=[SeqSlice(0, length, start + length, block_ids)],
        logit_rows=torch.tensor(list(range(length)) if rows is None else rows, dtype=torch.int64),
    )
