"""XXH3 of 128 bits for compiled code: the function that the package xxhash brings along, called by its address.

Knows nothing about blocks. Where the package was built for several processors, it chooses by the one that it runs on:
AVX2 does 24 GB/s of what lies in the cache, SSE2 15.
"""

import ctypes
from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from xxhash import _xxhash  # type: ignore[attr-defined]  # its stubs leave the library itself out

from tiers.books.compiled import ADDRESS, LONG, emitted

DIGEST_BYTES = 16
_NAME = "tierscope_xxh3_128"  # of the symbol in the machine code that is kept between starts
_NAMES = ("XXH3_128bits_dispatch", "XXH3_128bits")


def _address() -> int:
    library = ctypes.CDLL(_xxhash.__file__)
    for name in _NAMES:
        if hasattr(library, name):
            return ctypes.cast(library[name], ctypes.c_void_p).value or 0
    raise ImportError(f"The package xxhash hides {_NAMES[-1]}; expected one whose library exports it.")


binding.add_symbol(_NAME, _address())


@emitted
def xxh3_128(typing: Any, address: Any, num_bytes: Any) -> Any:
    """(low, high) of so many bytes at the address: C's struct of two, which its compilers return as this pair is."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = ir.IntType(64)
        both = ir.LiteralStructType([word, word])
        called = ir.FunctionType(both, [word, word])
        function = cgutils.get_or_insert_function(builder.module, called, _NAME)  # type: ignore[no-untyped-call]
        pair = builder.call(function, arguments)
        return context.make_tuple(builder, signature.return_type, [builder.extract_value(pair, at) for at in (0, 1)])

    return types.UniTuple(types.uint64, 2)(ADDRESS, LONG), generate  # type: ignore[no-untyped-call]
