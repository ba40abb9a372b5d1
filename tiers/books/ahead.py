"""Memory that is asked for before it is needed, for compiled code: the processor goes on meanwhile.

numba has no such thing; LLVM, which it compiles with, has. Knows nothing about what lies there.
"""

from typing import Any

from llvmlite import ir
from numba import types

from tiers.books.compiled import ADDRESS, emitted


@emitted
def ask_for(typing: Any, address: Any) -> Any:
    """The line of the cache that has the byte at that address, if it is any of ours."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = ir.IntType(32)
        place = builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [place.type, word, word, word])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [place.type], kind)
        builder.call(
            prefetch, [place, *(ir.Constant(word, value) for value in (0, 3, 1))]
        )  # to be read, for long, data
        return context.get_dummy_value()

    return types.void(ADDRESS), generate
