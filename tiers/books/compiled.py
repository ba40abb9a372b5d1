"""How functions over integer arrays are compiled, and where the machine code is kept between starts.

numba compiles at the first call (all of it: about as long as loading the model) and keeps an entry's code in a folder.
It notices when the entry's own file has another time or size, but not its content, nor the files of the parts that are
compiled into it. So the folder is named after all of them. Where no folder can be written, everything is compiled at
every start.
"""

import os
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.extending import intrinsic
from numpy.typing import NDArray

# The element types are for the reader: in compiled code they are numba's, not numpy's.
Ints32 = NDArray[Any]
Ints64 = NDArray[Any]
Words = NDArray[Any]

F = TypeVar("F", bound=Callable[..., Any])


def sources(root: Path) -> str:
    """A name for the state of every file from which something is compiled."""
    digest = blake2b(numba.__version__.encode(), digest_size=8)
    for path in sorted(root.rglob("*.py")):
        text = path.read_bytes()
        if path.parent.name in ("books", "policies", "whatif") or b"\n@aside\n" in text:
            digest.update(text)
    return digest.hexdigest()


def _keep_code() -> None:
    """In the folder that is asked for, or beside the sources, whose code it is, if that can be written."""
    beside = Path(__file__).parent / "__pycache__"
    folder = os.environ.get("NUMBA_CACHE_DIR") or str(beside / "numba")
    vars(numba.config)["CACHE_DIR"] = str(Path(folder) / sources(Path(__file__).parents[1]))


_keep_code()

# Every function that Python calls, so that none is compiled while somebody waits (`warm_up`).
ENTRIES: list[Any] = []


def entry(function: F) -> F:
    """A function that Python calls: its code, with that of its parts, is kept between starts. It makes no arrays."""
    return _compiled(function, _nrt=False)


def making_entry(function: F) -> F:
    """Its like that makes arrays."""
    return _compiled(function, _nrt=True)


def aside(function: F) -> F:
    """Its like for threads that move bytes: others run Python meanwhile. It may make arrays."""
    return _compiled(function, _nrt=True, nogil=True)


def _compiled(function: F, **options: Any) -> F:
    try:
        compiled = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # nowhere to write to
        compiled = numba.njit(**options)(function)
    ENTRIES.append(compiled)
    return cast(F, compiled)


def _uncalled(*, makes_arrays: bool) -> Any:
    options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": makes_arrays}
    return numba.njit(**options)


def part(function: F) -> F:
    """A function that is compiled into those that call it; Python cannot. It makes no arrays.

    Where numba manages memory, it counts who has an array up and down, each table at every call of a part, by an atomic
    instruction: two thirds of what the books took.
    """
    return cast(F, _uncalled(makes_arrays=False)(function))


def making_part(function: F) -> F:
    """Its like that makes arrays."""
    return cast(F, _uncalled(makes_arrays=True)(function))


def emitted(function: Callable[..., Any]) -> Any:
    """A part in LLVM's own words. It has other arguments for those who call it: not those of the compiler."""
    return intrinsic(function)


# C's int and long, and a pointer.
INT, LONG, ADDRESS = numba.types.int32, numba.types.int64, numba.types.uintp


def system(name: str, returned: Any, *taken: Any) -> Any:
    """A function of the C library, for compiled code, by the types that it returns and takes."""
    return numba.types.ExternalFunction(name, returned(*taken))
