"""What `make run` consists of: install, supervise, wait until it is ready, stop. Knows nothing about caches."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
