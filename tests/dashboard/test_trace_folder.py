"""The folder of traces: nothing outside of it is ever opened, what is in it is its owner's alone, and it is bounded."""

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from dashboard import trace_folder
from dashboard.trace_folder import TraceFileError, add_piece, folder, mark_of, remove, take_in, trace_files, trace_path


@pytest.fixture(autouse=True)
def home(tmp_path: Path, settings: Any) -> Path:
    settings.TIERSCOPE_HOME = tmp_path / "home"
    return tmp_path


@pytest.mark.parametrize("name", ["", ".", "..", "../secret-key", "/etc/passwd", "a/b", ".hidden", "a\0b", "x" * 200])
def test_only_names_in_the_folder_are_looked_for(name: str, home: Path) -> None:
    (home / "home").mkdir(exist_ok=True)
    (home / "home" / "secret-key").write_text("secret")
    with pytest.raises(TraceFileError, match="no trace"):
        trace_path(name)
    with pytest.raises(TraceFileError, match="no name"):
        add_piece(name, 0, b"x", is_last=True)


def test_a_link_in_the_folder_leads_nowhere(home: Path) -> None:
    (home / "outside").write_text("secret")
    (folder() / "link").symlink_to(home / "outside")
    with pytest.raises(TraceFileError):
        trace_path("link")
    assert trace_files() == []


def test_an_upload_comes_in_pieces_and_is_there_when_the_last_has_come() -> None:
    assert add_piece("week.jsonl", 0, b"abc", is_last=False) == 3
    assert trace_files() == []
    assert add_piece("week.jsonl", 3, b"def", is_last=True) == 6
    path = trace_path("week.jsonl")
    assert path.read_bytes() == b"abcdef"
    assert path.stat().st_mode & 0o777 == 0o600
    assert folder().stat().st_mode & 0o777 == 0o700


def test_an_upload_that_is_begun_again_begins_from_nothing_and_one_that_went_astray_is_told() -> None:
    add_piece("week.jsonl", 0, b"abc", is_last=False)
    with pytest.raises(TraceFileError, match="astray"):
        add_piece("week.jsonl", 2, b"c", is_last=True)
    add_piece("week.jsonl", 0, b"xyz", is_last=True)
    assert trace_path("week.jsonl").read_bytes() == b"xyz"


def test_no_upload_takes_the_place_of_a_trace() -> None:
    add_piece("week.jsonl", 0, b"abc", is_last=True)
    with pytest.raises(TraceFileError, match="already"):
        add_piece("week.jsonl", 0, b"other", is_last=True)
    remove("week.jsonl")
    add_piece("week.jsonl", 0, b"other", is_last=True)


def test_a_trace_and_the_folder_have_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_folder, "MAX_FILE_BYTES", 10)
    add_piece("a", 0, b"12345678", is_last=False)
    with pytest.raises(TraceFileError, match="pack it"):
        add_piece("a", 8, b"123", is_last=True)
    assert list(folder().iterdir()) == []
    monkeypatch.setattr(trace_folder, "MAX_FOLDER_BYTES", 15)
    add_piece("a", 0, b"12345678", is_last=True)
    with pytest.raises(TraceFileError, match="pack it"):
        add_piece("b", 0, b"12345678", is_last=True)


def test_a_disk_that_is_full_is_told_in_a_sentence_and_the_upload_begins_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(*args: Any, **kwargs: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(trace_folder, "_append", full)
        with pytest.raises(TraceFileError, match="cannot be stored: No space left"):
            add_piece("week.jsonl", 0, b"abc", is_last=False)
    assert add_piece("week.jsonl", 0, b"abc", is_last=True) == 3


def test_uploads_that_nobody_went_on_with_go_after_a_day() -> None:
    add_piece("old", 0, b"1", is_last=False)
    add_piece("new", 0, b"1", is_last=False)
    os.utime(folder() / ".old.part", (1, 1))
    trace_folder.remove_old_parts(100)
    assert [path.name for path in folder().iterdir()] == [".new.part"]


def test_a_file_from_anywhere_is_taken_in_once_under_a_name_that_can_be_asked_for(home: Path) -> None:
    path = home / "my trace (1).jsonl"
    path.write_text("abc")
    name = take_in(path)
    assert name == "my-trace-1-.jsonl"
    assert trace_path(name).read_text() == "abc"
    assert trace_path(name).stat().st_mode & 0o777 == 0o600
    assert take_in(path) == name
    path.write_text("other")
    assert take_in(path) == "my-trace-1--2.jsonl"
    assert take_in(folder() / name) == name


def test_a_folder_of_logs_is_a_trace_too(home: Path) -> None:
    logs = home / "logs"
    logs.mkdir()
    for number in range(2):
        (logs / f"{number}.jsonl").write_text("abc")
    assert take_in(logs) == take_in(logs) == "logs"
    assert [(each.name, each.num_bytes) for each in trace_files()] == [("logs", 6)]
    assert (trace_path("logs") / "1.jsonl").stat().st_mode & 0o777 == 0o600
    remove("logs")
    assert trace_files() == []


def test_what_belongs_to_another_user_hides_no_other_and_its_removal_is_refused_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (folder() / "others").mkdir()
    (folder() / "own.jsonl").write_text("abc")
    iterdir = Path.iterdir

    def refused(path: Path) -> Any:
        if path.name == "others":
            raise PermissionError(errno.EACCES, "Permission denied")
        return iterdir(path)

    def refuses(path: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refused)
    monkeypatch.setattr(shutil, "rmtree", refuses)
    assert [each.name for each in trace_files()] == ["own.jsonl"]
    with pytest.raises(TraceFileError, match="cannot be removed: Permission denied"):
        remove("others")


def test_a_file_that_goes_meanwhile_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    (folder() / "recorded-local").mkdir()
    for name in ("1.jsonl", "2.jsonl"):
        (folder() / "recorded-local" / name).write_text("abc")
    seen, stat = 0, Path.stat

    def goes(path: Path, **told: Any) -> os.stat_result:
        nonlocal seen
        seen += path.name == "1.jsonl"
        if seen > 1:
            raise FileNotFoundError(path)
        return stat(path, **told)

    monkeypatch.setattr(Path, "stat", goes)
    assert [each.num_bytes for each in trace_files()] == [6]


def test_a_long_name_is_cut_to_one_that_can_be_asked_for(home: Path) -> None:
    for number in range(2):
        (home / str(number)).mkdir()
        path = home / str(number) / f"a{'-' * 130}week.jsonl"
        path.write_text("x" * (number + 1))
        assert trace_path(take_in(path)).read_text() == "x" * (number + 1)
    path = home / f"{'x' * 200}.jsonl"
    path.write_text("y")
    assert trace_path(take_in(path)).read_text() == "y"


def test_another_file_has_another_mark() -> None:
    add_piece("a", 0, b"abc", is_last=True)
    before = mark_of(trace_path("a"))
    os.utime(trace_path("a"), (1, 1))
    assert mark_of(trace_path("a")) != before
