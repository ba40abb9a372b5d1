"""Where tests keep the bundled model's unpacked weights (540 MB), between sessions and for every stack they start."""

import os
import tempfile
from pathlib import Path

MODEL_CACHE = Path(tempfile.gettempdir()) / f"tierscope-tests-{os.getuid()}"
