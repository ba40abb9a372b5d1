"""Where memory lies, for what is called by address. Knows nothing about what is in it."""

import ctypes


def address_of(view: memoryview) -> int:
    """Of memory that may be written; whoever uses it keeps the view."""
    return ctypes.addressof(ctypes.c_char.from_buffer(view))
