"""Texts of traces through a model's own tokenizer: the known numbers of a real trace, and every kind of file."""

from pathlib import Path
from statistics import median_high

import numpy as np
import pytest

from engine.chat_template import ChatTemplateError
from engine.loader import bundled
from engine.trace_tokenizer import load_trace_tokenizer
from engine.weights_error import WeightsError
from tests.engine.model_files import write_gguf
from tests.model_cache import MODEL_CACHE
from tiers.traces import TraceRequest, open_trace
from tiers.whatif import HitCurve, stack_positions, traced_accesses

TRACE = Path(__file__).parents[3] / "shared" / "traces" / "lmcache_miniswe.tar.gz"


@pytest.mark.slow
@pytest.mark.skipif(not TRACE.exists(), reason=f"the trace is not at {TRACE}")
def test_the_known_numbers_of_a_real_agents_trace() -> None:
    """Its readme counts every block that a prompt needs, also the partial last one, which nothing can serve."""
    requests: list[TraceRequest] = []
    with open_trace(TRACE, load_tokenizer=lambda: load_trace_tokenizer(bundled(), MODEL_CACHE)) as trace:
        requests += trace
    assert len(requests) == 402
    assert median_high(request.num_prompt_tokens for request in requests) == 4_731
    accesses = traced_accesses(requests).accesses
    curve = HitCurve()
    curve.add(stack_positions(accesses), accesses.is_asked.astype(np.int64))
    num_blocks = sum(-(-request.num_prompt_tokens // 16) for request in requests)
    assert round(curve.hits(None) / num_blocks, 3) == 0.934


def test_a_gguf_file_that_nobody_unpacked_has_its_tokenizer(tmp_path: Path) -> None:
    tokenizer = load_trace_tokenizer(write_gguf(tmp_path / "tiny.gguf"), tmp_path / "models")
    assert list(tokenizer.prompt("ab")) == list(tokenizer.answer("ab")) != []
    assert not (tmp_path / "models").exists(), "nothing is left behind"


def test_what_is_no_tokenizer_is_told(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(WeightsError, match="is not a usable tokenizer"):
        load_trace_tokenizer(tmp_path, tmp_path)
    with pytest.raises(FileNotFoundError):
        load_trace_tokenizer(tmp_path / "gone.json", tmp_path)


def test_messages_need_a_chat_template(tmp_path: Path) -> None:
    tokenizer = load_trace_tokenizer(write_gguf(tmp_path / "tiny.gguf"), tmp_path)
    with pytest.raises(ChatTemplateError, match="has no chat template"):
        tokenizer.prompt([{"role": "user", "content": "a"}])
