"""BLAKE2b (RFC 7693) without a key, over a chain of blocks: each hashes the digest before it and its own token ids.

Says the same as hashlib, four times as fast: there, what a call costs in Python is more than the hash. Knows nothing
about what the digests are used for.
"""

import numpy as np

from tiers.books.compiled import Words, making_entry, part

DIGEST_BYTES = 16
IV = np.array(
    [
        *(0x6A09E667F3BCC908, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1),
        *(0x510E527FADE682D1, 0x9B05688C2B3E6C1F, 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179),
    ],
    np.uint64,
)
SIGMA = np.array(
    [
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
        [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
        [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
        [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
        [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
        [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
        [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
        [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
        [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
    ],
    np.uint8,
)
# Digest length and “sequential”, RFC 7693 section 2.5.
PARAMETERS = np.uint64(0x01010000 ^ DIGEST_BYTES)
CHUNK_WORDS = 32
R32, R24, R16, R63 = np.uint64(32), np.uint64(24), np.uint64(16), np.uint64(63)
L32, L40, L48, L1 = np.uint64(32), np.uint64(40), np.uint64(48), np.uint64(1)


@making_entry
def chain(root: Words, token_ids: Words, block_size: int, digests: Words, sigma: Words) -> None:
    """`root` uint32 [4], `token_ids` uint32 [n · block_size], `digests` uint32 [n, 4] to be filled.

    `sigma` is SIGMA: were it a constant here, all twelve rounds would be laid out, which takes seconds to compile.
    """
    message = np.empty(CHUNK_WORDS, np.uint32)
    words = message.view(np.uint64)
    state = np.empty(8, np.uint64)
    before = root
    num_words = 4 + block_size
    for block in range(len(digests)):
        state[:] = IV
        state[0] ^= PARAMETERS
        first = block * block_size - 4
        for start in range(0, num_words, CHUNK_WORDS):
            for at in range(CHUNK_WORDS):
                index = start + at
                if index < 4:
                    message[at] = before[index]
                elif index < num_words:
                    message[at] = token_ids[first + index]
                else:
                    message[at] = 0
            is_last = start + CHUNK_WORDS >= num_words
            _compress(state, words, sigma, 4 * (num_words if is_last else start + CHUNK_WORDS), is_last)
        for half in range(2):
            digests[block, 2 * half] = np.uint32(state[half] & np.uint64(0xFFFFFFFF))
            digests[block, 2 * half + 1] = np.uint32(state[half] >> R32)
        before = digests[block]


@part
def _compress(h: Words, m: Words, sigma: Words, num_bytes: int, is_last: bool) -> None:
    """Function F of the RFC, section 3.2."""
    v0, v1, v2, v3, v4, v5, v6, v7 = h[0], h[1], h[2], h[3], h[4], h[5], h[6], h[7]
    v8, v9, v10, v11 = IV[0], IV[1], IV[2], IV[3]
    v12, v13, v14, v15 = IV[4] ^ np.uint64(num_bytes), IV[5], IV[6], IV[7]
    if is_last:
        v14 = ~v14
    for number in range(12):
        s = sigma[number]
        v0, v4, v8, v12 = _mix(v0, v4, v8, v12, m[s[0]], m[s[1]])
        v1, v5, v9, v13 = _mix(v1, v5, v9, v13, m[s[2]], m[s[3]])
        v2, v6, v10, v14 = _mix(v2, v6, v10, v14, m[s[4]], m[s[5]])
        v3, v7, v11, v15 = _mix(v3, v7, v11, v15, m[s[6]], m[s[7]])
        v0, v5, v10, v15 = _mix(v0, v5, v10, v15, m[s[8]], m[s[9]])
        v1, v6, v11, v12 = _mix(v1, v6, v11, v12, m[s[10]], m[s[11]])
        v2, v7, v8, v13 = _mix(v2, v7, v8, v13, m[s[12]], m[s[13]])
        v3, v4, v9, v14 = _mix(v3, v4, v9, v14, m[s[14]], m[s[15]])
    h[0] ^= v0 ^ v8
    h[1] ^= v1 ^ v9
    h[2] ^= v2 ^ v10
    h[3] ^= v3 ^ v11
    h[4] ^= v4 ^ v12
    h[5] ^= v5 ^ v13
    h[6] ^= v6 ^ v14
    h[7] ^= v7 ^ v15


@part
def _mix(
    a: np.uint64, b: np.uint64, c: np.uint64, d: np.uint64, x: np.uint64, y: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    """Function G of the RFC, section 3.1."""
    a = a + b + x
    d ^= a
    d = (d >> R32) | (d << L32)
    c = c + d
    b ^= c
    b = (b >> R24) | (b << L40)
    a = a + b + y
    d ^= a
    d = (d >> R16) | (d << L48)
    c = c + d
    b ^= c
    b = (b >> R63) | (b << L1)
    return a, b, c, d
