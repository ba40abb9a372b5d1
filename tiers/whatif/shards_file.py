"""A sampled stack's order of use as one file: written whole or not at all, checked when read. 1 MB at most by default.

Knows nothing about when, or whose blocks they are.
"""

import struct
from hashlib import blake2b
from pathlib import Path

import numpy as np

from tiers.block_file import write_file
from tiers.whatif.shards import ALL, Sample, hashes

MAGIC = b"TSREUSE\n"
VERSION = 1
IDENTITY_BYTES = 16
# magic, version, identity of the blocks, threshold, keys, those of them that are thinned
_FIELDS = struct.Struct(f"<8sI{IDENTITY_BYTES}sQQQ")
_CHECKSUM_BYTES = 16
_MAX_BYTES = 64 << 20


class SampleFileError(ValueError):
    """The file is no such order; the message says why."""


def save_sample(path: Path, identity: bytes, sample: Sample) -> None:
    """For the owner only. Raises OSError; the file of before is there until the new one is whole."""
    fields = _FIELDS.pack(MAGIC, VERSION, identity, sample.threshold, len(sample.keys), sample.num_thinned)
    keys = sample.keys.astype("<i8").tobytes()
    temporary = path.with_name(f".{path.name}.tmp")
    write_file(temporary, [fields, keys, _checksum(fields, keys)])
    temporary.replace(path)


def load_sample(path: Path, identity: bytes) -> Sample:
    """Raises SampleFileError for what is torn, altered, of another version or of other blocks; OSError."""
    with path.open("rb") as file:
        data = file.read(_MAX_BYTES + 1)
    if not _FIELDS.size + _CHECKSUM_BYTES <= len(data) <= _MAX_BYTES:
        raise SampleFileError(f"it has {len(data):,} bytes or more, which is no order of blocks.")
    fields, keys, checksum = data[: _FIELDS.size], data[_FIELDS.size : -_CHECKSUM_BYTES], data[-_CHECKSUM_BYTES:]
    magic, version, found, threshold, num_keys, num_thinned = _FIELDS.unpack(fields)
    if (magic, version) != (MAGIC, VERSION):
        raise SampleFileError(f"it is not an order of version {VERSION}.")
    if checksum != _checksum(fields, keys):
        raise SampleFileError("it is torn or altered.")
    if found != identity:
        raise SampleFileError("it is of another model, or of other blocks.")
    sample = Sample(np.frombuffer(keys, "<i8").astype(np.int64), num_thinned, threshold)
    if not _is_sound(sample, num_keys):
        raise SampleFileError("its numbers contradict each other.")
    return sample


def _is_sound(sample: Sample, num_keys: int) -> bool:
    keys = sample.keys
    return (
        num_keys == len(keys) == len(np.unique(keys))
        and sample.num_thinned <= len(keys)
        and 1 <= sample.threshold <= ALL
        and bool((hashes(keys[: sample.num_thinned]) < sample.threshold).all())
    )


def _checksum(fields: bytes, keys: bytes) -> bytes:
    return blake2b(fields + keys, digest_size=_CHECKSUM_BYTES).digest()
