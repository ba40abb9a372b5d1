"""A byte-level BPE tokenizer from the lists that a GGUF file keeps. Knows nothing about the file itself."""

from collections.abc import Iterable, Mapping
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors

from engine.weights_error import WeightsError

_CONTROL, _USER_DEFINED = 3, 4
_LLAMA3_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# Tokens at which a turn or a text ends, in the models' own spelling; a file names only one of them as its end.
_END_TOKENS = ("<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "</s>")


def build(fields: Mapping[str, Any]) -> Tokenizer:
    """`fields` are the file's `tokenizer.*` values. Raises WeightsError for kinds other than byte-level BPE."""
    kind, pre = fields.get("tokenizer.ggml.model"), fields.get("tokenizer.ggml.pre", "default")
    if kind != "gpt2":
        raise WeightsError(
            f"The file's tokenizer is of kind {kind!r}; from GGUF only 'gpt2' (byte-level BPE) is supported. "
            "Load the model's Hugging Face folder instead."
        )
    tokens: list[str] = fields["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ", 1)) for merge in fields.get("tokenizer.ggml.merges", [])]
    vocab = {token: index for index, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges, ignore_merges=pre == "llama-bpe"))
    tokenizer.pre_tokenizer = _pre_tokenizer(pre)
    tokenizer.decoder = decoders.ByteLevel()
    types = fields.get("tokenizer.ggml.token_type", [])
    tokenizer.add_special_tokens([_added(token) for token, type_ in _typed(tokens, types) if type_ == _CONTROL])
    tokenizer.add_tokens([_added(token) for token, type_ in _typed(tokens, types) if type_ == _USER_DEFINED])
    if fields.get("tokenizer.ggml.add_bos_token"):
        bos_id = fields["tokenizer.ggml.bos_token_id"]
        tokenizer.post_processor = _with_bos(tokens[bos_id], bos_id)
    return tokenizer


def end_ids(fields: Mapping[str, Any]) -> list[int]:
    """Ids that end a generation: the file's own and its spelling of the well-known ones, ascending."""
    tokens = fields["tokenizer.ggml.tokens"]
    types = fields.get("tokenizer.ggml.token_type", [])
    known = {index for index, (token, type_) in enumerate(_typed(tokens, types)) if token in _END_TOKENS and type_ == 3}
    own = {fields.get(f"tokenizer.ggml.{name}_token_id") for name in ("eos", "eot", "eom")}
    return sorted(known | {index for index in own if index is not None})


def _typed(tokens: list[str], types: list[int]) -> Iterable[tuple[str, int]]:
    return zip(tokens, types or [1] * len(tokens), strict=True)


def _added(token: str) -> AddedToken:
    return AddedToken(token, normalized=False, special=True)


def _pre_tokenizer(pre: str) -> pre_tokenizers.PreTokenizer:
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    if pre in ("default", "gpt-2"):
        return byte_level
    if pre == "smollm":
        return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level])
    if pre == "llama-bpe":
        split = pre_tokenizers.Split(Regex(_LLAMA3_SPLIT), "isolated")
        return pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    raise WeightsError(f"The file's pre-tokenizer is {pre!r}; supported are default, gpt-2, smollm and llama-bpe.")


def _with_bos(token: str, token_id: int) -> processors.PostProcessor:
    return processors.TemplateProcessing(
        single=f"{token} $A", pair=f"{token} $A {token} $B", special_tokens=[(token, token_id)]
    )
