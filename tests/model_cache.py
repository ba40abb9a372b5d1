"""What tests prepare once, between sessions and for every stack they start."""

import os
import tempfile
import zlib
from pathlib import Path

# The bundled model's unpacked weights, 540 MB.
MODEL_CACHE = Path(tempfile.gettempdir()) / f"tierscope-tests-{os.getuid()}"
# Collected static files, for each checkout and each of the processes that run its tests side by side.
_CHECKOUT = f"static-{zlib.crc32(__file__.encode()):08x}"
STATIC_CACHE = MODEL_CACHE / _CHECKOUT / os.environ.get("PYTEST_XDIST_WORKER", "alone")
