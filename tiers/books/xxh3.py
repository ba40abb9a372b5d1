"""XXH3 of 128 bits for compiled code: the functions that the package xxhash brings along, called by their addresses.

Knows nothing about blocks. Where the package was built for several processors, they choose by the one that they run on:
AVX2 does 24 GB/s of what lies in the cache, SSE2 15.
"""

import ctypes
from collections.abc import Callable
from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from xxhash import _xxhash  # type: ignore[attr-defined]  # its stubs leave the library itself out

from tiers.books.compiled import ADDRESS, INT, LONG, Words, emitted, system

_DIGEST_BYTES = 16
# Of a state where somebody else makes room for it, on a multiple of 64.
STATE_BYTES = 1024
# Of the functions in the machine code that is kept between starts.
_PREFIX = "tierscope_"
_LIBRARY = ctypes.CDLL(_xxhash.__file__)
_PAIR: Any = types.UniTuple(types.uint64, 2)  # type: ignore[no-untyped-call]  # numba types it not
_get_function: Any = cgutils.get_or_insert_function


def _named(name: str) -> str:
    """A symbol for the function of that name, or its variant for several processors."""
    for variant in (f"{name}_dispatch", name):
        if hasattr(_LIBRARY, variant):
            binding.add_symbol(_PREFIX + name, ctypes.cast(_LIBRARY[variant], ctypes.c_void_p).value)
            return _PREFIX + name
    raise ImportError(f"The library of the package xxhash hides {name}; expected one that exports it.")


_AT_ONCE, _DIGEST = _named("XXH3_128bits"), _named("XXH3_128bits_digest")
# Bit by bit, into a state: an address that `new_state` gave.
reset = system(_named("XXH3_128bits_reset"), INT, ADDRESS)
update = system(_named("XXH3_128bits_update"), INT, ADDRESS, ADDRESS, LONG)


def new_state() -> int:
    """For as long as the process runs."""
    create = _LIBRARY.XXH3_createState
    create.restype = ctypes.c_void_p
    return int(create())


@emitted
def xxh3_128(typing: Any, address: Any, num_bytes: Any) -> Any:
    """(low, high) of so many bytes at the address."""
    return _PAIR(ADDRESS, LONG), _call_of(_AT_ONCE)


@emitted
def digest(typing: Any, state: Any) -> Any:
    """(low, high) of what the state was updated with."""
    return _PAIR(ADDRESS), _call_of(_DIGEST)


def _call_of(symbol: str) -> Callable[..., Any]:
    """C's struct of two, which its compilers return as this pair is."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = ir.IntType(64)
        called = ir.FunctionType(ir.LiteralStructType([word, word]), [word] * len(arguments))
        function = _get_function(builder.module, called, symbol)
        pair = builder.call(function, arguments)
        return context.make_tuple(builder, signature.return_type, [builder.extract_value(pair, at) for at in (0, 1)])

    return generate


def as_digests(pairs: Words) -> list[bytes]:
    """Of rows (high, low), as the package writes them."""
    written = pairs.astype(">u8").tobytes()
    return [written[start : start + _DIGEST_BYTES] for start in range(0, len(written), _DIGEST_BYTES)]
