"""The bundled model, loaded once a session."""

import pytest
import torch

from engine.loader import LoadedModel, load
from tests.model_cache import MODEL_CACHE
from tiers import warm_up


@pytest.fixture(scope="session")
def real_model() -> LoadedModel:
    return load(None, cache_dir=MODEL_CACHE, device=torch.device("cpu"), progress=lambda text, share: None)


@pytest.fixture(scope="session", autouse=True)
def compiled() -> None:
    """So that no test waits for it in the middle."""
    warm_up()
