"""How large each tier of one cache could be now, and what bounds it. Changes nothing."""

from tiers.assembly import Parts
from tiers.errors import RefusedError
from tiers.level import Level
from tiers.limits import MachineLimits
from tiers.names import Tier
from tiers.sizes import in_words


class Bounds:
    """What the machine could give, less what is promised to other tiers; of a server, what it told at the last look."""

    def __init__(self, parts: Parts, limits: MachineLimits) -> None:
        self._parts = parts
        self._limits = limits

    def max_bytes(self, tier: Tier) -> int:
        level = self._parts.level(tier)
        if level is None:
            return 0
        if tier is Tier.DISK:
            path = self._parts.disk.folder if self._parts.disk else None
            return self._limits.max_bytes(tier, held_bytes=level.num_blocks * level.block_bytes, path=path)
        if tier is Tier.REMOTE:
            return self._max_remote_bytes(level)
        if not self._parts.gpu.pool.is_host_memory:
            return self._limits.max_bytes(tier, held_bytes=self._held_bytes(tier))
        # gpu and cpu share the host's memory: neither may have what is promised to the other.
        promised = sum(
            other.capacity_bytes
            for other in self._parts.levels
            if other.tier in (Tier.GPU, Tier.CPU) and other.tier is not tier
        )
        held = self._held_bytes(Tier.GPU) + self._held_bytes(Tier.CPU)
        return max(0, self._limits.max_bytes(tier, held_bytes=held) - promised)

    def reason(self, tier: Tier) -> str:
        """What bounds `max_bytes`, as the end of a sentence."""
        remote, room = self._parts.remote, self._parts.follower.room
        if self._parts.level(tier) is None:
            return "this engine has no such tier"
        if tier is not Tier.REMOTE or remote is None:
            return self._limits.why(tier)
        if room is None:
            return f"its server has not answered yet ({remote.breaker.last_error or 'it is being asked'})"
        return (
            f"that is what its server may use, {in_words(room.limit_bytes)}, less a reserve and what others have there"
        )

    def check(self, level: Level, capacity_bytes: int) -> None:
        """Raises RefusedError if the tier cannot have as much."""
        max_bytes = self.max_bytes(level.tier)
        if capacity_bytes > max_bytes:
            raise RefusedError(
                f"The {level.tier} tier cannot have {in_words(capacity_bytes)}; at most {in_words(max_bytes)} are "
                f"possible now: {self.reason(level.tier)}."
            )

    def _max_remote_bytes(self, level: Level) -> int:
        """A server on this machine has no more than the machine has."""
        room, remote = self._parts.follower.room, self._parts.remote
        if room is None or remote is None:
            return 0
        if not remote.is_local:
            return room.max_bytes
        return min(room.max_bytes, self._limits.max_bytes(Tier.REMOTE, held_bytes=level.num_blocks * level.block_bytes))

    def _held_bytes(self, tier: Tier) -> int:
        if tier is Tier.GPU:
            gpu = self._parts.gpu
            num_blocks = gpu.slots.num_in_use if gpu.pool.is_host_memory else gpu.pool.num_blocks
        else:
            num_blocks = self._parts.host.num_in_use
        return num_blocks * self._parts.config.slab.num_bytes
