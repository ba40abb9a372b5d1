"""The tokenizer for traces with texts: the chosen one, or that of the model that is served here. Knows no trace.

Only workers and commands load it: where a model still has to be unpacked, torch comes along.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from django.conf import settings

if TYPE_CHECKING:
    from engine.trace_tokenizer import TraceTokenizer


def load_tokenizer(path: Path | None = None) -> "TraceTokenizer":
    """Raises ValueError with a sentence, or OSError where the path leads nowhere."""
    from engine.trace_tokenizer import load_trace_tokenizer

    return load_trace_tokenizer(path or _default_model(), settings.TIERSCOPE_HOME / "models")


def _default_model() -> Path:
    if settings.MODEL_PATH:
        return Path(settings.MODEL_PATH)
    from engine.loader import bundled  # torch

    return bundled()
