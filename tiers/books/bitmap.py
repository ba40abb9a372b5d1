"""A set of small integers whose least member is found in constant time: bits, and bits that say which words have any.

Three levels of 64 reach 262,144 numbers with one word at the top; above that the top is searched, 40 words for ten
million. Compiled; knows nothing about what the numbers are.
"""

import numpy as np

from tiers.books.compiled import Ints64, Words, entry, part
from tiers.books.layout import NONE

# What is counted beside the words: numbers there are, the limit below which one may be taken, members, members below,
# and words of the second level.
NUM_TOTAL, LIMIT, NUM_FREE, NUM_LOW_FREE, NUM_GROUPS = 0, 1, 2, 3, 4
NUM_COUNTS = 5

ONE, ALL, SHIFT = np.uint64(1), np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64(58)
# De Bruijn's sequence: the product with a power of two has another index in its upper six bits for each.
DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
PLACE_OF = np.array(
    [
        *(0, 1, 48, 2, 57, 49, 28, 3, 61, 58, 50, 42, 38, 29, 17, 4, 62, 55, 59, 36, 53, 51, 43, 22, 45, 39, 33, 30),
        *(24, 18, 12, 5, 63, 47, 56, 27, 60, 41, 37, 16, 54, 35, 52, 21, 44, 32, 23, 11, 46, 26, 40, 15, 34, 20, 31),
        *(10, 25, 14, 19, 9, 13, 8, 7, 6),
    ],
    np.int64,
)


def empty_words(num_groups: int) -> Words:
    """For 4,096 numbers a group, none of which is a member: leaves, groups, and words over those."""
    return np.zeros(num_groups * 65 + -(-num_groups // 64), np.uint64)


@part
def _place(word: np.uint64) -> int:
    """Of its lowest bit; the word is not 0."""
    return PLACE_OF[((word & (~word + ONE)) * DE_BRUIJN) >> SHIFT]


@part
def _set(words: Words, first: int, index: int) -> None:
    words[first + index // 64] |= ONE << np.uint64(index % 64)


@part
def _unset(words: Words, first: int, index: int) -> bool:
    """True if its word is empty now."""
    words[first + index // 64] &= ALL ^ (ONE << np.uint64(index % 64))
    return words[first + index // 64] == np.uint64(0)


@part
def put(words: Words, counts: Ints64, number: int) -> None:
    second, third = counts[NUM_GROUPS] * 64, counts[NUM_GROUPS] * 65
    _set(words, 0, number)
    _set(words, second, number // 64)
    _set(words, third, number // 4096)
    counts[NUM_FREE] += 1
    counts[NUM_LOW_FREE] += number < counts[LIMIT]


@part
def take_low(words: Words, counts: Ints64) -> int:
    """The least member if it is below the limit, else NONE."""
    if counts[NUM_LOW_FREE] == 0:
        return NONE
    second, third = counts[NUM_GROUPS] * 64, counts[NUM_GROUPS] * 65
    top = third
    while words[top] == np.uint64(0):
        top += 1
    group = (top - third) * 64 + _place(words[top])
    leaf = group * 64 + _place(words[second + group])
    number = leaf * 64 + _place(words[leaf])
    if _unset(words, 0, number) and _unset(words, second, leaf):
        _unset(words, third, group)
    counts[NUM_FREE] -= 1
    counts[NUM_LOW_FREE] -= 1
    return number


@part
def take(words: Words, counts: Ints64) -> int:
    """As `take_low`, unless as many are in use as the limit says."""
    in_use = counts[NUM_TOTAL] - counts[NUM_FREE]
    return take_low(words, counts) if in_use < counts[LIMIT] else NONE


@entry
def put_one(words: Words, counts: Ints64, number: int) -> None:
    put(words, counts, number)


@entry
def put_many(words: Words, counts: Ints64, numbers: Ints64) -> None:
    for number in numbers:
        put(words, counts, number)


@entry
def take_one(words: Words, counts: Ints64, is_limited: bool) -> int:
    return take(words, counts) if is_limited else take_low(words, counts)
