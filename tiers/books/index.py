"""Blocks by key: open addressing with linear probing; removal shifts back (Knuth, The Art of Computer Programming, 6.4,
algorithm R), so that there are no tombstones and a look-up stays short for ever.

An entry is 32 bits of a mixed key and the node's row + 1; 0 is empty. So a probe reads a row only where 32 bits agree,
and look-ups of one prompt wait for memory together, not one after the other. Keys are digests, which nobody can choose.
"""

import numpy as np

from tiers.books.ahead import ask_for
from tiers.books.compiled import Ints32, Ints64, part
from tiers.books.layout import COPY, KEY, NONE, NUM_COPY_COLUMNS, NUM_INDEXED, Tables, at, wide

ROW_BITS = 32
ROW_MASK = (1 << 32) - 1
# Odd numbers: the golden ratio's (Knuth), and two of xxHash's.
MIX_A, MIX_B, MIX_C = -7046029254386353131, -4417276706812531889, 1609587929392839161


@part
def tag_of(key: Ints32) -> int:
    """32 signed bits; the low ones say where to look first."""
    first = (np.int64(key[0]) << 32) | (np.int64(key[1]) & ROW_MASK)
    second = (np.int64(key[2]) << 32) | (np.int64(key[3]) & ROW_MASK)
    mixed = (first * MIX_A) ^ (second * MIX_B)
    mixed ^= mixed >> 32
    return wide((mixed * MIX_C) >> 32)


@part
def find(t: Tables, key: Ints32) -> int:
    """The node's row, or NONE."""
    mask = len(t.places) - 1
    tag = tag_of(key)
    place = tag & mask
    while t.places[place] != 0:
        entry = t.places[place]
        if entry >> ROW_BITS == tag:
            row = (entry & ROW_MASK) - 1
            if has_key(t, row, key):
                return row
        place = (place + 1) & mask
    return wide(NONE)


@part
def has_key(t: Tables, row: int, key: Ints32) -> bool:
    return (
        t.nodes[row, KEY] == key[0]
        and t.nodes[row, KEY + 1] == key[1]
        and t.nodes[row, KEY + 2] == key[2]
        and t.nodes[row, KEY + 3] == key[3]
    )


@part
def ask_for_places(t: Tables, keys: Ints32) -> None:
    """Where `guess` will look."""
    mask, places = len(t.places) - 1, t.places.ctypes.data
    for number in range(len(keys)):
        ask_for(places + 8 * (tag_of(keys[number]) & mask))


@part
def guess(t: Tables, keys: Ints32, rows: Ints32) -> None:
    """Fills the rows whose entries have the keys' 32 bits, nearly always the right ones, or NONE.

    The processor waits for many of these places at once; with all of a look-up between two of them, for one or two. The
    same for the rows, which are asked for, and for the copies that they name.
    """
    mask = len(t.places) - 1
    nodes, node_bytes = t.nodes.ctypes.data, 4 * t.nodes.shape[1]
    for number in range(len(keys)):
        tag = tag_of(keys[number])
        place = tag & mask
        while t.places[place] != 0 and t.places[place] >> ROW_BITS != tag:
            place = (place + 1) & mask
        row = (t.places[place] & ROW_MASK) - 1
        rows[number] = row
        if row != NONE:
            ask_for(nodes + row * node_bytes)
            ask_for(nodes + row * node_bytes + node_bytes - 4)
    copies, copy_bytes = t.copies.ctypes.data, 4 * NUM_COPY_COLUMNS
    for number in range(len(keys)):
        row = wide(rows[number])
        copy = NONE if row == NONE else at(t.nodes, row, COPY)
        if copy != NONE:
            ask_for(copies + copy * copy_bytes)


@part
def insert(index: Ints64, tag: int, row: int) -> None:
    mask = len(index) - 1
    place = tag & mask
    while index[place] != 0:
        place = (place + 1) & mask
    index[place] = (tag << ROW_BITS) | (row + 1)


@part
def remove(t: Tables, row: int) -> None:
    mask = len(t.places) - 1
    entry = (tag_of(t.nodes[row, KEY : KEY + 4]) << ROW_BITS) | (row + 1)
    place = (entry >> ROW_BITS) & mask
    while t.places[place] != entry:
        place = (place + 1) & mask
    t.counts[NUM_INDEXED] -= 1
    hole = place
    place = (place + 1) & mask
    while t.places[place] != 0:
        home = (t.places[place] >> ROW_BITS) & mask
        # It may move back unless its first place lies behind the hole, in the order of probing.
        if (place - home) & mask >= (place - hole) & mask:
            t.places[hole] = t.places[place]
            hole = place
        place = (place + 1) & mask
    t.places[hole] = 0


@part
def refill(old: Ints64, new: Ints64) -> None:
    """Every entry of `old` into the empty, larger `new`."""
    for entry in old:
        if entry != 0:
            insert(new, entry >> ROW_BITS, (entry & ROW_MASK) - 1)


@part
def set_key(t: Tables, row: int, key: Ints32) -> None:
    for word in range(4):
        t.nodes[row, KEY + word] = key[word]
