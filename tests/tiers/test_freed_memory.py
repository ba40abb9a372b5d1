"""What compiled code gives the system an address of is still its own when the system looks there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("with_freed_memory_overwritten.py")
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("byte", [1, 0xA5])
def test_no_memory_is_used_after_it_was_freed(tmp_path: Path, byte: int) -> None:
    """glibc's settings; another C library leaves freed memory as it was. 1 makes the descriptor of a poll a wrong one,
    and 0xA5 one that is waited for in vain."""
    settings = f"glibc.malloc.tcache_count=0:glibc.malloc.perturb={byte}"
    environment = os.environ | {"GLIBC_TUNABLES": settings, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path)], env=environment, capture_output=True, text=True, timeout=120
    )
    assert (done.stdout, done.stderr) == ("True True\n", "")
