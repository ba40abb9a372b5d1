"""What a block's slab is written as where bytes are dear, and back. Lossy but for `none`. Knows nothing about tiers.

fp16 and bf16 keep half of the bytes. int8 keeps a quarter and its scales, after KIVI (Liu et al., 2024): keys have
channels that are always large, so each channel of a head has a scale over the block's tokens; values have none such, so
each token has one over its channels.
"""

from typing import Protocol

import numpy as np

from tiers.config import SlabSpec
from tiers.names import Compression
from tiers.scratch import Scratch

_FP16_MAX = float(np.finfo(np.float16).max)
_LEVELS = 127


class Codec(Protocol):
    """Of slabs of one shape. `num_bytes` is what an encoded one takes; plain: slabs are written as they are."""

    num_bytes: int
    is_plain: bool

    def encode(self, slab: memoryview) -> memoryview: ...

    def landing(self, slab: memoryview) -> memoryview:
        """Where an encoded slab is read to, by the thread that then decodes it."""

    def decode(self, encoded: memoryview, slab: memoryview) -> None:
        """`encoded` is what `landing` gave."""


class Plain:
    """As it is; nothing is copied."""

    is_plain = True

    def __init__(self, slab: SlabSpec) -> None:
        self.num_bytes = slab.num_bytes

    def encode(self, slab: memoryview) -> memoryview:
        return slab

    def landing(self, slab: memoryview) -> memoryview:
        return slab

    def decode(self, encoded: memoryview, slab: memoryview) -> None:
        """It is where it belongs."""


class _Lossy:
    is_plain = False

    def __init__(self, num_bytes: int) -> None:
        self.num_bytes = num_bytes
        self._scratch = Scratch(num_bytes)

    def landing(self, slab: memoryview) -> memoryview:
        return self._scratch.get()


class Fp16(_Lossy):
    """Numbers beyond ±65,504 become that: an infinity would spread through every later token."""

    def __init__(self, slab: SlabSpec) -> None:
        super().__init__(slab.num_bytes // 2)

    def encode(self, slab: memoryview) -> memoryview:
        numbers = np.frombuffer(slab, np.float32)
        return _bytes_of(np.clip(numbers, -_FP16_MAX, _FP16_MAX).astype(np.float16))

    def decode(self, encoded: memoryview, slab: memoryview) -> None:
        np.copyto(np.frombuffer(slab, np.float32), np.frombuffer(encoded, np.float16))


class Bf16(_Lossy):
    """Rounded to nearest, ties to even; numpy has no such type."""

    def __init__(self, slab: SlabSpec) -> None:
        super().__init__(slab.num_bytes // 2)

    def encode(self, slab: memoryview) -> memoryview:
        bits = np.frombuffer(slab, np.uint32)
        rounded = bits >> 16
        rounded &= 1
        rounded += bits
        rounded += 0x7FFF
        rounded >>= 16
        return _bytes_of(rounded.astype(np.uint16))

    def decode(self, encoded: memoryview, slab: memoryview) -> None:
        np.left_shift(np.frombuffer(encoded, np.uint16), 16, out=np.frombuffer(slab, np.uint32), dtype=np.uint32)


class Int8(_Lossy):
    """Slabs are [layers, keys and values, heads, tokens, channels]; encoded: all numbers, then all scales (fp32)."""

    def __init__(self, slab: SlabSpec) -> None:
        self._shape = slab.shape
        layers, _, heads, tokens, channels = slab.shape
        self._scales = {"keys": (layers, heads, 1, channels), "values": (layers, heads, tokens, 1)}
        self._num_numbers = slab.num_bytes // 4
        self._num_scales = {name: int(np.prod(shape)) for name, shape in self._scales.items()}
        super().__init__(self._num_numbers + 4 * sum(self._num_scales.values()))

    def encode(self, slab: memoryview) -> memoryview:
        numbers = np.frombuffer(slab, np.float32).reshape(self._shape)
        encoded = memoryview(bytearray(self.num_bytes))
        levels, scales = self._parts(encoded)
        for index, name in enumerate(self._scales):
            one, scale = numbers[:, index], scales[name]
            axis = 2 if name == "keys" else 3
            largest = np.maximum(one.max(axis, keepdims=True), -one.min(axis, keepdims=True))
            np.divide(largest, _LEVELS, out=scale)
            scaled = np.rint(one / np.where(scale > 0, scale, 1))
            np.copyto(levels[:, index], np.clip(scaled, -_LEVELS, _LEVELS, out=scaled), casting="unsafe")
        return encoded

    def decode(self, encoded: memoryview, slab: memoryview) -> None:
        numbers = np.frombuffer(slab, np.float32).reshape(self._shape)
        levels, scales = self._parts(encoded)
        for index, name in enumerate(self._scales):
            np.multiply(levels[:, index], scales[name], out=numbers[:, index], dtype=np.float32)

    def _parts(self, encoded: memoryview) -> tuple["np.ndarray", dict[str, "np.ndarray"]]:
        levels = np.frombuffer(encoded, np.int8, self._num_numbers).reshape(self._shape)
        scales, at = {}, self._num_numbers
        for name, shape in self._scales.items():
            scales[name] = np.frombuffer(encoded, np.float32, self._num_scales[name], at).reshape(shape)
            at += 4 * self._num_scales[name]
        return levels, scales


def codec_for(compression: Compression, slab: SlabSpec) -> Codec:
    """Raises ValueError where slabs are not what the compression is made for."""
    if compression is Compression.NONE:
        return Plain(slab)
    if slab.dtype != "float32":
        raise ValueError(f"The compression {compression} is for blocks of float32; these are of {slab.dtype}.")
    if compression is not Compression.INT8:
        return Fp16(slab) if compression is Compression.FP16 else Bf16(slab)
    if len(slab.shape) != 5 or slab.shape[1] != 2:
        raise ValueError(
            f"The compression int8 is for blocks of [layers, 2, heads, tokens, channels]; these have {slab.shape}."
        )
    return Int8(slab)


def _bytes_of(numbers: "np.ndarray") -> memoryview:
    return numbers.data.cast("B")
