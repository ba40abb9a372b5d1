"""The bundled model, loaded once a session. Its unpacked weights are kept between sessions."""

import os
import tempfile
from pathlib import Path

import pytest
import torch

from engine.loader import LoadedModel, load

MODEL_CACHE = Path(tempfile.gettempdir()) / f"tierscope-tests-{os.getuid()}"


@pytest.fixture(scope="session")
def real_model() -> LoadedModel:
    return load(None, cache_dir=MODEL_CACHE, device=torch.device("cpu"), progress=lambda text, share: None)
