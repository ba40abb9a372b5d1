"""How many bytes the machine could give to a tier now, and why not more. Knows nothing about who asks."""

from pathlib import Path

import psutil

from tiers.names import Tier

# Left to everything else that lives on the machine: a tenth, but at most 2 GiB of memory and 1 GiB of disk.
MEMORY_SPARE_BYTES = 2 << 30
DISK_SPARE_BYTES = 1 << 30
SPARE_SHARE = 10
CGROUP = Path("/sys/fs/cgroup")


class MachineLimits:
    """Reads the machine at every call. Without CUDA the gpu tier lives in the host's memory."""

    def __init__(self, disk_path: Path | None = None, has_cuda: bool = False) -> None:
        self._disk_path = disk_path
        self._has_cuda = has_cuda

    def max_bytes(self, tier: Tier, *, held_bytes: int = 0, path: Path | None = None) -> int:
        """The largest size that the tier could have, if it holds `held_bytes` of the machine already."""
        if tier is Tier.DISK:
            free, total, spare = *_disk(path or self._disk_path or Path()), DISK_SPARE_BYTES
        elif tier is Tier.GPU and self._has_cuda:
            free, total, spare = *_cuda(), MEMORY_SPARE_BYTES
        else:
            free, total, spare = *_memory(), MEMORY_SPARE_BYTES
        return max(0, free + held_bytes - min(spare, total // SPARE_SHARE))

    def why(self, tier: Tier) -> str:
        """What bounds the tier, as the end of a sentence."""
        if tier is Tier.DISK:
            return "that is what the disk has free, less a reserve for others"
        if tier is Tier.GPU and self._has_cuda:
            return "that is what the GPU has free, less a reserve for the model's work"
        return "that is what the machine's memory has free, less a reserve for others"


def _memory() -> tuple[int, int]:
    """(free, total) bytes of the host, or of the container if it may have less."""
    host = psutil.virtual_memory()
    try:
        total = int((CGROUP / "memory.max").read_text())
        used = int((CGROUP / "memory.current").read_text())
    except (OSError, ValueError):  # no cgroup, or "max": no limit
        return host.available, host.total
    return min(host.available, max(0, total - used)), min(host.total, total)


def _disk(path: Path) -> tuple[int, int]:
    while not path.exists():
        path = path.parent
    usage = psutil.disk_usage(str(path))
    return usage.free, usage.total


def _cuda() -> tuple[int, int]:
    import torch

    return torch.cuda.mem_get_info()
