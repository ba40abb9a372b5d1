"""The order of use on disk: it comes back whole, for the owner only, or not at all."""

from pathlib import Path

import numpy as np
import pytest

from tiers.whatif.shards import ALL, Sample, SampledStack
from tiers.whatif.shards_file import SampleFileError, load_sample, save_sample
from tiers.whatif.shards_trace import hashed

MODEL, OTHER = bytes(16), bytes([1] * 16)


@pytest.fixture
def sample() -> Sample:
    stack = SampledStack(64)
    stack.touch(hashed(np.arange(1000)))
    return stack.sample()


@pytest.fixture
def path(tmp_path: Path, sample: Sample) -> Path:
    path = tmp_path / "reuse-order"
    save_sample(path, MODEL, sample)
    return path


def test_an_order_comes_back_as_it_was(path: Path, sample: Sample) -> None:
    found = load_sample(path, MODEL)
    assert found.keys.tolist() == sample.keys.tolist()
    assert (found.num_thinned, found.threshold) == (sample.num_thinned, sample.threshold)
    assert 0 < found.num_thinned < len(found.keys)
    assert found.threshold < ALL


def test_an_empty_order_comes_back(tmp_path: Path) -> None:
    save_sample(tmp_path / "x", MODEL, SampledStack(64).sample())
    assert len(load_sample(tmp_path / "x", MODEL).keys) == 0


def test_it_is_for_its_owner_only_and_nothing_else_is_left(path: Path, sample: Sample) -> None:
    save_sample(path, MODEL, sample)
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_an_order_of_other_blocks_is_refused(path: Path) -> None:
    with pytest.raises(SampleFileError, match="of another model"):
        load_sample(path, OTHER)


def test_whatever_byte_is_wrong_nothing_is_read(path: Path) -> None:
    data = path.read_bytes()
    for place in {*range(60), *range(60, len(data), 97), len(data) - 1}:
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(SampleFileError):
            load_sample(path, MODEL)


@pytest.mark.parametrize("num_bytes", [0, 10, 51, 75, 200])
def test_a_torn_file_is_refused(path: Path, num_bytes: int) -> None:
    path.write_bytes(path.read_bytes()[:num_bytes])
    with pytest.raises(SampleFileError):
        load_sample(path, MODEL)


def test_numbers_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    twice = Sample(np.array([5, 5], np.int64), 0, ALL)
    too_many = Sample(np.array([5], np.int64), 2, ALL)
    not_sampled = Sample(np.array([7 << 32], np.int64), 1, 7)
    no_threshold = Sample(np.array([5], np.int64), 0, 0)
    for number, sample in enumerate((twice, too_many, not_sampled, no_threshold)):
        save_sample(tmp_path / str(number), MODEL, sample)
        with pytest.raises(SampleFileError, match="contradict"):
            load_sample(tmp_path / str(number), MODEL)
