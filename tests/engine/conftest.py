"""The bundled model, loaded once a session."""

import pytest
import torch

from engine.loader import LoadedModel, load
from tests.model_cache import MODEL_CACHE


@pytest.fixture(scope="session")
def real_model() -> LoadedModel:
    return load(None, cache_dir=MODEL_CACHE, device=torch.device("cpu"), progress=lambda text, share: None)
