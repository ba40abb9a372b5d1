"""A copy that goes past the caches, for compiled code. numba has no such store; LLVM, which it compiles with, has.

Knows nothing about blocks.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from tiers.books.compiled import ADDRESS, LONG, emitted

# Bytes of one step of `copy_past_cache`; addresses and lengths are multiples of it.
LANE_BYTES = 32


@emitted
def copy_past_cache(typing: Any, target: Any, source: Any, num_lanes: Any) -> Any:
    """Between addresses, by stores that do not read what they overwrite, as memcpy does it from some MiB on.

    Others see it after a `fence` only.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lane = ir.VectorType(ir.IntType(64), LANE_BYTES // 8)
        target, source = (builder.inttoptr(each, lane.as_pointer()) for each in arguments[:2])
        past_cache = builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)])
        with cgutils.for_range(builder, arguments[2]) as loop:
            value = builder.load(builder.gep(source, [loop.index]), align=LANE_BYTES)
            store = builder.store(value, builder.gep(target, [loop.index]), align=LANE_BYTES)
            store.set_metadata("nontemporal", past_cache)
        return context.get_dummy_value()

    return types.void(ADDRESS, ADDRESS, LONG), generate


@emitted
def fence(typing: Any) -> Any:
    """What was stored before is seen by all threads before what is stored after."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), generate
