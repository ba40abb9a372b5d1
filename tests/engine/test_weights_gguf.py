"""A GGUF file becomes the model once; later starts read what the first one kept, if it is whole."""

import os
import signal
import tempfile
import threading
from pathlib import Path

import pytest
import torch

from engine import gguf_weights
from engine.loader import bundled, load, name_of
from engine.weights import deinterleave, interleave
from engine.weights_error import WeightsError
from tests.engine.factories import tiny_llama
from tests.engine.model_files import CONFIG, write_gguf
from tests.engine.tiny_logits import CPU, TOKENS, logits_of, logits_of_model, quiet


@pytest.fixture(scope="module")
def expected() -> torch.Tensor:
    return logits_of_model(tiny_llama(CONFIG))


def test_a_file_gives_the_models_logits(tmp_path: Path, expected: torch.Tensor) -> None:
    path = write_gguf(tmp_path / "tiny.gguf")
    torch.testing.assert_close(logits_of(path, tmp_path / "cache"), expected)
    loaded = load(path, cache_dir=tmp_path / "cache", device=CPU, progress=quiet)
    assert loaded.tokenizer.encode("a small test<end>") == [*TOKENS, 256]
    assert (loaded.name, loaded.eos_ids) == ("tiny", frozenset({256}))


def test_a_later_start_reads_what_the_first_one_kept(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "tiny.gguf")
    folder = gguf_weights.converted(path, tmp_path, quiet)
    made_at = (folder / "model.safetensors").stat().st_mtime_ns
    texts: list[str] = []
    assert gguf_weights.converted(path, tmp_path, lambda text, share: texts.append(text)) == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == made_at
    assert texts == ["Hashing the weights"]


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "config.json", "fingerprint"])
@pytest.mark.parametrize("harm", ["cut", "flip", "remove"])
def test_what_was_kept_but_damaged_is_made_anew(name: str, harm: str, tmp_path: Path, expected: torch.Tensor) -> None:
    path = write_gguf(tmp_path / "tiny.gguf")
    file = gguf_weights.converted(path, tmp_path, quiet) / name
    data = file.read_bytes()
    if harm == "remove":
        file.unlink()
    else:
        file.write_bytes(data[:-1] if harm == "cut" else data[:-1] + bytes([data[-1] ^ 1]))
    torch.testing.assert_close(logits_of(path, tmp_path), expected)


def test_what_is_kept_is_private_and_leaves_no_scraps(tmp_path: Path) -> None:
    folder = gguf_weights.converted(write_gguf(tmp_path / "tiny.gguf"), tmp_path / "cache", quiet)
    assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o600}
    assert folder.stat().st_mode & 0o777 == 0o700
    assert os.listdir(tmp_path / "cache") == [folder.name]


def test_what_a_killed_conversion_left_is_removed_at_the_next_start_whatever_that_loads(tmp_path: Path) -> None:
    path, cache = write_gguf(tmp_path / "tiny.gguf"), tmp_path / "cache"
    folder = gguf_weights.converted(path, cache, quiet)
    child = os.fork()
    if child == 0:
        with tempfile.TemporaryDirectory(prefix="gguf-", dir=cache):
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert len(os.listdir(cache)) == 2
    gguf_weights.converted(path, cache, quiet)
    assert os.listdir(cache) == [folder.name]


def test_a_conversion_that_runs_is_left_alone_and_waited_for(tmp_path: Path) -> None:
    path, cache = write_gguf(tmp_path / "tiny.gguf"), tmp_path / "cache"
    other = write_gguf(tmp_path / "other.gguf", base=20_000.0)
    has_begun, may_go_on, seen = threading.Event(), threading.Event(), list[str]()

    def slowly(text: str, share: float) -> None:
        if text == "Unpacking the weights":
            has_begun.set()
            may_go_on.wait(20)

    running = threading.Thread(target=gguf_weights.converted, args=(path, cache, slowly))
    running.start()
    assert has_begun.wait(20)
    part = os.listdir(cache)

    def told(text: str, share: float) -> None:
        seen.append(text)
        if text.startswith("Waiting"):
            seen.extend(os.listdir(cache))
            may_go_on.set()

    assert gguf_weights.is_whole(gguf_weights.converted(other, cache, told))
    running.join(20)
    assert seen[1:3] == ["Waiting for another conversion", *part]
    assert gguf_weights.is_whole(gguf_weights.converted(path, cache, quiet))
    assert len(os.listdir(cache)) == 2


def test_a_file_of_another_content_is_kept_elsewhere(tmp_path: Path) -> None:
    first = gguf_weights.converted(write_gguf(tmp_path / "a.gguf"), tmp_path, quiet)
    (tmp_path / "a.gguf").unlink()
    second = gguf_weights.converted(write_gguf(tmp_path / "a.gguf", base=20_000.0), tmp_path, quiet)
    assert first != second


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"architecture": "qwen2"}, "architecture 'qwen2'; expected 'llama'"),
        ({"kind": "llama"}, "tokenizer is of kind 'llama'.*Hugging Face folder instead"),
        ({"pre": "deepseek-llm"}, "pre-tokenizer is 'deepseek-llm'; supported are"),
        ({"extra": "rope_freqs.weight"}, "tensor rope_freqs.weight, which a plain Llama model does not use"),
        ({"extra": "blk.0.attn_q.bias"}, "tensor blk.0.attn_q.bias"),
    ],
)
def test_a_file_that_this_engine_cannot_run_is_refused(changes: dict[str, str], sentence: str, tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "tiny.gguf", **changes)  # type: ignore[arg-type]
    with pytest.raises(WeightsError, match=sentence):
        load(path, cache_dir=tmp_path / "cache", device=CPU, progress=quiet)
    assert os.listdir(tmp_path / "cache") == [] if (tmp_path / "cache").exists() else True


@pytest.mark.parametrize("size", [0, 3, 40, 3000])
def test_a_torn_file_is_refused(size: int, tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "tiny.gguf")
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(WeightsError, match="not a whole GGUF file"):
        load(path, cache_dir=tmp_path, device=CPU, progress=quiet)


def test_interleaving_is_undone() -> None:
    weight = torch.randn(24, 5)
    assert torch.equal(deinterleave(interleave(weight, 8), 8), weight)


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("SmolLM2-135M-Instruct.Q4_1.gguf", "SmolLM2-135M-Instruct"),
        ("llama-3.2-1b-instruct-Q4_K_M.gguf", "llama-3.2-1b-instruct"),
        ("tiny.BF16.gguf", "tiny"),
        ("plain.gguf", "plain"),
    ],
)
def test_a_models_name_is_its_files_without_the_quantisation(file: str, name: str, tmp_path: Path) -> None:
    (tmp_path / file).touch()
    assert name_of(tmp_path / file) == name


def test_the_bundled_file_is_there() -> None:
    assert bundled().name == "SmolLM2-135M-Instruct.Q4_1.gguf"
