"""How much of a server's memory blocks may have, from what the server says about itself. Knows nothing about blocks.

The server may be the broker's, too: blocks never take what others need, and keep away from the point where it would
refuse writes or throw keys out.
"""

from dataclasses import dataclass

# Of what the server may use, a tenth stays free: for the broker's bursts, and for what allocation wastes.
SPARE_SHARE = 10
# A server without a limit of its own may use half of its machine; we cannot see who else lives there.
MACHINE_SHARE = 2


@dataclass(frozen=True)
class Room:
    """`limit_bytes` is `maxmemory`, or a share of the machine where there is none; `own_bytes` is what blocks take."""

    used_bytes: int
    limit_bytes: int
    own_bytes: int
    policy: str

    @classmethod
    def parse(cls, info: bytes, own_bytes: int) -> "Room":
        """From the answer to INFO memory. Raises ValueError if it is none."""
        lines = (line.partition(":") for line in info.decode(errors="replace").splitlines() if ":" in line)
        told = {name: value for name, _, value in lines}
        try:
            limit = int(told["maxmemory"]) or int(told["total_system_memory"]) // MACHINE_SHARE
            return cls(int(told["used_memory"]), limit, own_bytes, told["maxmemory_policy"])
        except KeyError as missing:
            raise ValueError(f"the server's INFO does not tell {missing}") from None

    @property
    def free_bytes(self) -> int:
        """What more may be written now."""
        return max(0, self.limit_bytes - self.limit_bytes // SPARE_SHARE - self.used_bytes)

    @property
    def max_bytes(self) -> int:
        """What blocks may have together, those that are there included."""
        return self.free_bytes + self.own_bytes

    @property
    def warning(self) -> str:
        """A sentence, or nothing."""
        if self.policy == "noeviction":
            return ""
        return (
            f"The server's maxmemory-policy is {self.policy}: when its memory is full it throws keys out, perhaps the "
            "broker's; noeviction is safe."
        )
