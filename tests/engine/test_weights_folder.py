"""A Hugging Face folder becomes the model, and what is damaged or foreign is refused with a sentence."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.loader import load
from engine.weights_error import WeightsError
from tests.engine.factories import tiny_llama, tiny_tensors
from tests.engine.model_files import CONFIG, write_folder, write_tensors
from tests.engine.tiny_logits import CPU, logits_of, logits_of_model, quiet


@pytest.fixture(scope="module")
def expected() -> torch.Tensor:
    return logits_of_model(tiny_llama(CONFIG))


@pytest.mark.parametrize("shards", [1, 3])
def test_a_folder_gives_the_models_logits(shards: int, tmp_path: Path, expected: torch.Tensor) -> None:
    folder = write_folder(tmp_path / "tiny", shards=shards)
    torch.testing.assert_close(logits_of(folder, tmp_path), expected)
    loaded = load(folder, cache_dir=tmp_path, device=CPU, progress=quiet)
    assert (loaded.name, loaded.eos_ids, loaded.chat_template) == ("tiny", frozenset({256}), None)


def test_other_weights_have_another_fingerprint_and_a_copy_has_the_same(tmp_path: Path) -> None:
    first, second = write_folder(tmp_path / "a"), write_folder(tmp_path / "b")
    third = write_folder(tmp_path / "c")
    write_tensors(third, tiny_tensors(CONFIG, seed=1), 1)
    prints = [load(path, cache_dir=tmp_path, device=CPU, progress=quiet).fingerprint for path in (first, second, third)]
    assert prints[0] == prints[1] != prints[2]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"model_type": "qwen2"}, "model_type 'qwen2'; expected 'llama'"),
        ({"attention_bias": True}, "attention_bias True; only False"),
        ({"hidden_act": "gelu"}, "hidden_act 'gelu'; only 'silu'"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 2}}, "RoPE scaling 'yarn'; supported are none and 'llama3'"),
        ({"rope_scaling": {"rope_type": "llama3", "factor": 2}}, "config.json lacks low_freq_factor"),
        ({"num_attention_heads": 3, "head_dim": 8}, "3 query heads cannot share 2"),
        ({"hidden_size": "wide"}, "config.json is not usable"),
        ({"num_hidden_layers": 3}, r"lack the tensor model\.layers\.2\."),
        ({"intermediate_size": 50}, r"has shape \(48, 32\); expected \(50, 32\)"),
        ({"vocab_size": 200}, "257 tokens, the model only 200|has shape"),
        ({"num_hidden_layers": 1}, r"have the tensor model\.layers\.1\..*not supported"),
    ],
)
def test_a_folder_that_this_engine_cannot_run_is_refused_with_a_sentence(
    changes: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    folder = write_folder(tmp_path / "tiny", **changes)
    with pytest.raises(WeightsError, match=sentence):
        load(folder, cache_dir=tmp_path, device=CPU, progress=quiet)


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:1000])


@pytest.mark.parametrize(
    ("file", "harm", "sentence"),
    [
        ("model.safetensors", cut, "not a whole safetensors file"),
        ("model.safetensors", Path.unlink, "has neither model.safetensors nor"),
        ("config.json", cut, "expected|lacks|cannot be read|not"),
        ("config.json", Path.unlink, "config.json cannot be read"),
        ("tokenizer.json", cut, "not a usable tokenizer"),
    ],
)
def test_a_damaged_folder_is_refused_with_a_sentence(file: str, harm: Any, sentence: str, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tiny")
    if file == "config.json" and harm is cut:
        (folder / file).write_text("[1]")
    else:
        harm(folder / file)
    with pytest.raises(WeightsError, match=sentence):
        load(folder, cache_dir=tmp_path, device=CPU, progress=quiet)


def test_an_index_cannot_name_files_outside_the_folder(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tiny", shards=2)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"x": "../secret.safetensors"}}))
    with pytest.raises(WeightsError, match="not in the folder"):
        load(folder, cache_dir=tmp_path, device=CPU, progress=quiet)


@pytest.mark.parametrize("name", ["missing.gguf", "weights.bin"])
def test_a_path_that_is_no_model_is_refused(name: str, tmp_path: Path) -> None:
    if name == "weights.bin":
        (tmp_path / name).write_bytes(b"pickle")
    with pytest.raises(WeightsError, match=r"does not exist|neither a \.gguf file nor a folder"):
        load(tmp_path / name, cache_dir=tmp_path, device=CPU, progress=quiet)
