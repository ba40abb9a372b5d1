"""A number that threads count up together, for compiled code: numba has no such thing, LLVM, which it uses, has.

Knows nothing about what is counted.
"""

from typing import Any

from llvmlite import ir
from numba import types

from tiers.books.compiled import ADDRESS, Ints64, aside, emitted


@emitted
def next_at(typing: Any, counter: Any) -> Any:
    """The number at that address, which is one more for whoever asks next: no two threads get the same."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = ir.IntType(64)
        place = builder.inttoptr(arguments[0], word.as_pointer())
        return builder.atomic_rmw("add", place, ir.Constant(word, 1), "monotonic")

    return types.int64(ADDRESS), generate


@aside
def next_of(counter: Ints64) -> int:
    """The same of an array of one."""
    number: int = next_at(counter.ctypes.data)
    return number
