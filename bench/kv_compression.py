"""How often a compressed tier changes an answer: greedy tokens over real prompts, against those over exact blocks.

Prompts are stretches of 160 tokens of real agents' conversations (../shared/traces); all their blocks but the last have
been through the codec, the last is computed over them, and the next tokens follow greedily. Where the conversations
are not there, nothing is said.
"""

import json
import tarfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import torch

from bench._peers import BLOCK_SIZE, our_model
from bench._real_engine import load_model
from bench.result import Result, compare
from engine.batch import ForwardBatch, SeqSlice
from engine.model import LlamaModel
from tiers import Compression, SlabSpec
from tiers.compression import codec_for

CONVERSATIONS = Path(__file__).parents[2] / "shared" / "traces" / "lmcache_miniswe.tar.gz"
NUM_PROMPTS = 500
PROMPT_TOKENS = 160
PREFIX_BLOCKS = PROMPT_TOKENS // BLOCK_SIZE - 1
BLOCKS_EACH = PREFIX_BLOCKS + 2
NEW_TOKENS = 8
GROUP = 16
# Of prompts whose tokens are all the same: a little below what was measured, so that a worse codec is noticed.
BARS = {Compression.FP16: 0.99, Compression.BF16: 0.98, Compression.INT8: 0.95}

Answers = dict[Compression, list[list[int]]]


def run() -> Iterable[Result]:
    if not CONVERSATIONS.exists():
        return
    prompts = _prompts(load_model().tokenizer.encode)
    model = our_model()
    same: Counter[Compression] = Counter()
    first: Counter[Compression] = Counter()
    for start in range(0, len(prompts), GROUP):
        answers = _answers(model, prompts[start : start + GROUP])
        for compression, found in answers.items():
            pairs = list(zip(found, answers[Compression.NONE], strict=True))
            same[compression] += sum(ours == exact for ours, exact in pairs)
            first[compression] += sum(ours[0] == exact[0] for ours, exact in pairs)
    slab = model.slab(BLOCK_SIZE)
    for compression, bar in BARS.items():
        times = slab.num_bytes / codec_for(compression, slab).num_bytes
        for what, counts in (("first token", first), (f"{NEW_TOKENS} tokens", same)):
            yield compare(
                f"{compression} ({times:.2f}× smaller): same {what}",
                ours=counts[compression] / len(prompts),
                reference=counts[Compression.NONE] / len(prompts),
                reference_name=f"exact blocks, {len(prompts)} prompts",
                unit="of prompts",
                bar=bar,
                better="higher",
            )


def _prompts(encode: Callable[[str], list[int]]) -> list[list[int]]:
    """Evenly spread over all conversations, none of them twice."""
    stretches = []
    for text in _conversations():
        token_ids = encode(text)
        stretches += [
            token_ids[start : start + PROMPT_TOKENS]
            for start in range(0, len(token_ids) - PROMPT_TOKENS + 1, PROMPT_TOKENS)
        ]
    step = max(1, len(stretches) // NUM_PROMPTS)
    return stretches[::step][:NUM_PROMPTS]


def _conversations() -> Iterator[str]:
    """The last call of each session: the others' texts are its beginning."""
    with tarfile.open(CONVERSATIONS) as archive:
        for member in sorted(archive.getnames()):
            file = archive.extractfile(member) if member.endswith(".jsonl") else None
            if file is not None:
                yield str(json.loads(file.readlines()[-1])["input"])


def _answers(model: LlamaModel, prompts: Sequence[Sequence[int]]) -> Answers:
    """Of all prompts with each compression, computed together as one batch."""
    slab = model.slab(BLOCK_SIZE)
    compressions = list(Compression)
    kv = torch.zeros(len(compressions) * len(prompts) * BLOCKS_EACH, *slab.shape)
    owners = [(compression, prompt) for compression in compressions for prompt in prompts]
    for number, prompt in enumerate(prompts):
        model.forward(_batch([prompt[: PREFIX_BLOCKS * BLOCK_SIZE]], [0], [number]), kv)
    for owner, (compression, _) in enumerate(owners):
        _through(compression, slab, kv, owner % len(prompts), owner)
    start = PREFIX_BLOCKS * BLOCK_SIZE
    new = [list(prompt[start:]) for _, prompt in owners]
    told: list[list[int]] = [[] for _ in owners]
    for _ in range(NEW_TOKENS):
        logits = model.forward(_batch(new, [start] * len(owners), range(len(owners))), kv)
        start += len(new[0])
        new = [[int(token)] for token in logits.argmax(1)]
        for answer, tokens in zip(told, new, strict=True):
            answer += tokens
    return {
        compression: told[index * len(prompts) : (index + 1) * len(prompts)]
        for index, compression in enumerate(compressions)
    }


def _through(compression: Compression, slab: SlabSpec, kv: torch.Tensor, source: int, target: int) -> None:
    """One prompt's blocks, as they come back from a tier."""
    codec = codec_for(compression, slab)
    for index in range(PREFIX_BLOCKS):
        block = memoryview(kv[source * BLOCKS_EACH + index].numpy().tobytes())
        into = memoryview(bytearray(slab.num_bytes))
        landing = codec.landing(into)
        landing[:] = codec.encode(block)
        codec.decode(landing, into)
        kv[target * BLOCKS_EACH + index] = torch.frombuffer(into, dtype=kv.dtype).view(slab.shape)


def _batch(new: Sequence[Sequence[int]], starts: Sequence[int], owners: Sequence[int]) -> ForwardBatch:
    """Each sequence's tokens from its start on; logits of each one's last token."""
    seqs, at = [], 0
    for token_ids, start, owner in zip(new, starts, owners, strict=True):
        blocks = list(range(owner * BLOCKS_EACH, (owner + 1) * BLOCKS_EACH))
        seqs.append(SeqSlice(at, len(token_ids), start + len(token_ids), blocks))
        at += len(token_ids)
    return ForwardBatch(
        token_ids=torch.tensor([token for token_ids in new for token in token_ids]),
        positions=torch.cat([torch.arange(seq.context_len - seq.query_len, seq.context_len) for seq in seqs]),
        seqs=seqs,
        logit_rows=torch.tensor([seq.query_start + seq.query_len - 1 for seq in seqs]),
    )
