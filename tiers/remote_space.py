"""The names of one layout's keys on a server. Knows nothing about connections."""

from dataclasses import dataclass

from tiers.block_format import Layout, stored_bytes
from tiers.books.header import VERSION
from tiers.config import SlabSpec
from tiers.keys import BlockKey
from tiers.names import Compression
from tiers.remote_wire import Reply, Wire

# A value outlives its place in the index, so that what the index names is there.
VALUE_EXTRA_SECONDS = 30


@dataclass(frozen=True)
class Space:
    """Everything lies under `prefix`. `value_bytes` is what each block takes; `ttl` is seconds since its last use."""

    layout: Layout
    value_bytes: int
    prefix: bytes
    ttl: int

    @classmethod
    def of(cls, slab: SlabSpec, block_size: int, fingerprint: str, compression: Compression, ttl: int) -> "Space":
        layout = Layout.of(slab, block_size, fingerprint, compression)
        return cls(
            layout, stored_bytes(slab, compression), b"ts:kv:%d:%s:" % (VERSION, layout.digest.hex().encode()), ttl
        )

    @property
    def index(self) -> bytes:
        return self.prefix + b"index"

    @property
    def value_ttl(self) -> int:
        return self.ttl + VALUE_EXTRA_SECONDS

    def value(self, key: BlockKey) -> bytes:
        return self.prefix + b"b:" + key

    def run(self, wire: Wire, script: str, *arguments: bytes | str | int, deadline: float) -> Reply:
        """One of remote_scripts, with the keys and arguments that all of them have."""
        keys = [self.prefix + name for name in (b"index", b"tree", b"gone", b"meta")]
        return wire.call("EVAL", script, len(keys), *keys, self.value(b""), self.ttl, *arguments, deadline=deadline)
