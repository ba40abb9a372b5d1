"""The order of bytes in which integers are stored: little-endian, whatever machine wrote them. Knows nothing else."""

import sys
from array import array


def little(numbers: "array[int]") -> "array[int]":
    """In the stored order, or back from it; on nearly every machine they are as they were."""
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
