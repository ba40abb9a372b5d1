"""What the machine could give to a tier, and why no more. Knows nothing about what the cache already holds."""

import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from tiers.names import Tier

# Other processes live here, too: memory below this share of the whole, and disk below that, is never ours.
_MEMORY_RESERVE = 0.05
_DISK_RESERVE = 0.05


@dataclass(frozen=True)
class MachineLimits:
    """Bytes that are free now, less a reserve. Tests give a subclass with other answers."""

    disk_path: Path | None = None
    has_cuda: bool = False

    def with_disk(self, path: Path | None) -> "MachineLimits":
        """The same machine with the disk tier's folder, where none was named."""
        return self if self.disk_path is not None else replace(self, disk_path=path)

    @property
    def memory_tiers(self) -> frozenset[Tier]:
        """Tiers that lie in the same host memory."""
        return frozenset({Tier.CPU} if self.has_cuda else {Tier.GPU, Tier.CPU})

    def max_bytes(self, tier: Tier) -> int:
        """Bytes that could be added to a tier now."""
        match tier:
            case Tier.GPU if self.has_cuda:
                free, total = torch.cuda.mem_get_info()
                return max(0, free - int(total * _MEMORY_RESERVE))
            case Tier.GPU | Tier.CPU:
                return max(0, available_memory() - int(total_memory() * _MEMORY_RESERVE))
            case Tier.DISK if self.disk_path is not None:
                usage = shutil.disk_usage(_existing(self.disk_path))
                return max(0, usage.free - int(usage.total * _DISK_RESERVE))
        return 0

    def why(self, tier: Tier) -> str:
        """What `max_bytes` stands for, as a person would say it."""
        match tier:
            case Tier.GPU if self.has_cuda:
                return "the GPU's free memory less 5 %"
            case Tier.GPU | Tier.CPU:
                return "the machine's free memory less 5 % of all"
            case Tier.DISK if self.disk_path is not None:
                return f"the free space of the disk under {self.disk_path} less 5 %"
        return f"there is no {tier} tier here"


def total_memory() -> int:
    """The machine's memory, or the container's where that is less."""
    return min(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), *_cgroup_limit())


def available_memory() -> int:
    """What the kernel says could be had without swapping, within the container's limit."""
    with open("/proc/meminfo") as file:
        lines = dict(line.split(":", 1) for line in file)
    available = int(lines["MemAvailable"].split()[0]) * 1024
    return min(available, *(limit - _cgroup_used() for limit in _cgroup_limit()))


def _cgroup_limit() -> list[int]:
    """cgroup v2's limit, if there is one; else a number that limits nothing."""
    text = _read("/sys/fs/cgroup/memory.max")
    return [int(text)] if text.isdigit() else [1 << 62]


def _cgroup_used() -> int:
    text = _read("/sys/fs/cgroup/memory.current")
    return int(text) if text.isdigit() else 0


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def _existing(path: Path) -> Path:
    """The nearest folder above that is there already."""
    return next(folder for folder in (path, *path.absolute().parents) if folder.exists())
