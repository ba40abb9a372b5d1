"""Lists of targets that are odd or mean harm: one sentence each, within bounds, and the lists after them are read."""

import os
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest
from django.utils import timezone

from dashboard.models import Discovery, Source
from dashboard.services.discovery import refresh_due
from dashboard.sources.discovery import DiscoveryError, Found, found, read_files

BOMB = "- &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"- &{to} [{','.join(['*' + at] * 9)}]\n" for at, to in pairwise("abcdefgh")
)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (BOMB, "odd.yml: An alias"),
        ("- &a [*a]", "odd.yml: An alias"),
        ("[" * 50, "odd.yml: The list is deeper or longer"),
        ("- " * 100_000, "odd.yml: The list is deeper or longer|is no YAML"),
        ("2026-11-30", "is no list of groups"),
        ("!!set {a, b}", "is no list of groups"),
        ("- !!binary aGVsbG8=", "Group 1 is none"),
        ("- targets: [2026-11-30]\n  labels: {a: 2026-11-30, b: !!binary aGVsbG8=}", ""),
        ("- targets: [gpu-1]\n  labels: {__param_a: 1e999, ? [a] : b}", "is no YAML"),
        ("--- a\n--- b", "is no YAML"),
        ("- targets: ['gpu-1:99999']", "Group 1: .*the host or the port cannot be read"),
        ("- targets: ['..']", "Group 1: The address has no host"),
        ("\x00", "is no YAML"),
    ],
)
def test_an_odd_yaml_is_one_sentence_and_its_scalars_are_texts(tmp_path: Path, text: str, sentence: str) -> None:
    file = tmp_path / "odd.yml"
    file.write_text(text)
    if not sentence:
        assert [target.url for target in found(read_files(str(file)))] == ["http://2026-11-30/metrics"]
        return
    with pytest.raises(DiscoveryError, match=sentence) as raised:
        found(read_files(str(file)))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "text", ['[{"targets": ["gpu-1"], "labels": {"__param_a": "\\ud800"}}]', "9" * 5000, "[" * 100_000]
)
def test_an_odd_json_is_one_sentence(text: str) -> None:
    with pytest.raises(DiscoveryError):
        found(text)


def test_a_pipe_that_nobody_writes_into_is_no_list(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yml")
    with pytest.raises(DiscoveryError, match=r"pipe.yml cannot be read .no regular file"):
        read_files(str(tmp_path / "pipe.yml"))
    (tmp_path / "folder.yml").mkdir()
    with pytest.raises(DiscoveryError, match=r"folder.yml cannot be read .no regular file"):
        read_files(str(tmp_path / "folder.yml"))


def test_a_file_whose_name_is_no_text_is_told(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.yml")).mkdir()
    with pytest.raises(DiscoveryError, match="no regular file") as raised:
        read_files(str(tmp_path / "*.yml"))
    str(raised.value).encode()


def test_a_pattern_that_is_none_is_told(tmp_path: Path) -> None:
    with pytest.raises(DiscoveryError):
        read_files(str(tmp_path / "**.yml"))


@pytest.mark.django_db
def test_a_list_that_breaks_the_reader_does_not_end_those_after_it(tmp_path: Path) -> None:
    (tmp_path / "well.yml").write_text("- targets: ['gpu-1:8000']")
    now = timezone.now()
    for name in ("broken", "well"):
        Discovery.objects.create(name=name, location=str(tmp_path / f"{name}.yml"), due_at=now)

    def read(discovery: Discovery, now: datetime) -> list[Found]:
        if discovery.name == "broken":
            raise KeyError("nobody thought of it")
        return found(read_files(discovery.location))

    assert refresh_due(now, read) == 1
    assert Source.objects.get().url == "http://gpu-1:8000/metrics"
    assert "could not be read (KeyError)" in Discovery.objects.get(name="broken").last_error
