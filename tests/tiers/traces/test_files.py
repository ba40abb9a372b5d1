"""Files, folders, archives: what is read of them, in which order, and where it ends."""

import bz2
import gzip
import io
import itertools
import json
import lzma
import os
import tarfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiers.traces import CountFaults, TraceError, TraceLimits, TraceRequest, open_trace
from tiers.traces.files import _Gunzip
from tiers.traces.in_order import merged, sorted_rows
from tiers.traces.limits import Meter
from tiers.traces.rows import Row


def line(time: float, *ids: object) -> bytes:
    return json.dumps({"time": time, "block_ids": ids}).encode() + b"\n"


def read(path: Path, **limits: int) -> list[TraceRequest]:
    with open_trace(path, limits=TraceLimits(**limits)) as trace:
        return list(trace)


def ids(path: Path) -> list[object]:
    return [name for request in read(path) for name in request.block_ids]


def archive(path: Path, mode: str, *members: tuple[str, bytes]) -> Path:
    with tarfile.open(path, mode) as file:  # type: ignore[call-overload]
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            file.addfile(info, io.BytesIO(content))
    return path


# -- what is read ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_file_is_told_by_its_content_whatever_its_name(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    (tmp_path / "trace").write_bytes(pack(line(1, "a") + b"\n" + line(2, "b")))
    assert ids(tmp_path / "trace") == ["a", "b"]


@pytest.mark.parametrize("mode", ["w:", "w:gz"])
def test_an_archives_files_are_read_as_one_trace_in_the_order_of_their_times(tmp_path: Path, mode: str) -> None:
    packed = gzip.compress(line(2, "c"))
    path = archive(tmp_path / "trace", mode, ("x/1", line(1, "a") + line(3, "b")), ("x/0.gz", packed), (".x", b"no"))
    assert ids(path) == ["a", "c", "b"]


def test_only_an_archives_regular_files_are_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(line(0, "secret"))
    path = archive(tmp_path / "trace.tar", "w:", ("../../up", line(1, "a")))
    with tarfile.open(path, "a:") as file:
        for kind, name in ((tarfile.SYMTYPE, "link"), (tarfile.LNKTYPE, "hard"), (tarfile.FIFOTYPE, "fifo")):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, str(secret)
            file.addfile(info)
    assert ids(path) == ["a"]
    assert {each.name for each in tmp_path.iterdir()} == {"secret", "trace.tar"}, "nothing is unpacked"


def test_a_folders_visible_files_are_merged_by_time(tmp_path: Path) -> None:
    (tmp_path / "0").write_bytes(line(2, "b") + line(4, "d"))
    (tmp_path / "1").write_bytes(gzip.compress(line(1, "a") + line(3, "c")))
    (tmp_path / ".hidden").write_text("no")
    (tmp_path / "sub").mkdir()
    assert ids(tmp_path) == ["a", "b", "c", "d"]
    assert ids(tmp_path / "*1") == ["a", "c"]


def test_files_without_times_follow_each_other_by_name(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / name).write_text(json.dumps({"block_ids": [name]}))
    assert ids(tmp_path) == ["a", "b"]


def test_one_file_keeps_its_order(tmp_path: Path) -> None:
    (tmp_path / "trace").write_bytes(line(5, "a") + line(4, "b"))
    requests = read(tmp_path / "trace")
    assert [request.at_seconds for request in requests] == [0, -1]


def test_how_far_it_is_can_be_told(tmp_path: Path) -> None:
    """By bytes, or, where an archive had to be sorted first, by requests."""
    (tmp_path / "big").write_bytes(b"".join(line(time, "x" * 1000) for time in range(1000)))
    (tmp_path / "tar").write_bytes(archive(tmp_path / "x", "w:", ("a", line(1, 1) * 4)).read_bytes())
    with open_trace(tmp_path / "big") as trace:
        shares = [trace.share_read for _ in trace]
    assert 0 < shares[0] < 0.3 < 0.9 < shares[-1] == 1
    with open_trace(tmp_path / "tar") as trace:
        assert [trace.share_read for _ in trace] == [0.25, 0.5, 0.75, 1]


@pytest.mark.parametrize(("pack", "name"), [(bz2.compress, "bzip2"), (lzma.compress, "xz")])
def test_what_is_packed_otherwise_is_told_by_name(tmp_path: Path, pack: Callable[[bytes], bytes], name: str) -> None:
    (tmp_path / "trace").write_bytes(pack(line(1, "a")))
    with pytest.raises(TraceError, match=f"is packed with {name}; expected plain lines, gzip or tar"):
        read(tmp_path / "trace")


def test_a_pipe_is_no_trace(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TraceError, match="which is read more than once"):
        read(tmp_path / "pipe")


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "gone")
    with pytest.raises(TraceError, match="has no regular files"):
        read(tmp_path / "gone*")
    with pytest.raises(TraceError, match="has no regular files"):
        read(tmp_path)


ROWS = st.lists(st.lists(st.integers(0, 5)), max_size=5)


@given(ROWS)
def test_sorting_and_merging_are_stable(files: list[list[int]]) -> None:
    numbers = itertools.count()
    rows = [[Row(str(next(numbers)), {}, at) for at in times] for times in files]

    def at(row: Row) -> float:
        return row.at or 0.0

    def wheres(found: Iterable[Row]) -> Sequence[str]:
        return [row.where for row in found]

    assert wheres(sorted_rows(itertools.chain(*rows), Meter(TraceLimits(), 0))) == wheres(
        sorted(itertools.chain(*rows), key=at)
    )
    in_order = [sorted(each, key=at) for each in rows]
    assert wheres(merged([iter(each) for each in in_order])) == wheres(sorted(itertools.chain(*in_order), key=at))


# -- where it ends -----------------------------------------------------------------------------------------------------
def test_a_torn_gzip_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "trace.gz"
    path.write_bytes(gzip.compress(b"".join(line(time, time) for time in range(3000)))[:-20])
    with pytest.raises(TraceError, match=r"line 2,9.*the compressed file is torn"):
        read(path)


def appended(*times: float) -> list[bytes]:
    """Members as an engine that records appends them, of 40 requests each."""
    return [gzip.compress(b"".join(line(time + n / 100, f"{time}.{n}") for n in range(40))) for time in times]


@pytest.mark.parametrize("kept", [1, 5, 11, 60, -9, -1])
def test_a_file_that_is_just_being_appended_to_ends_where_it_is(tmp_path: Path, kept: int) -> None:
    whole, growing = appended(1, 2)
    path = tmp_path / "20260921T141320Z-000001.jsonl.gz"
    path.write_bytes(whole + growing[:kept])
    names = [f"{time}.{n}" for time in (1, 2) for n in range(40)]
    assert names[:40] == ids(path)[:40]
    assert ids(path) == names[: len(ids(path))]


def test_what_is_damaged_in_the_middle_of_a_file_with_several_members_is_told(tmp_path: Path) -> None:
    first, second, third = appended(1, 2, 3)
    path = tmp_path / "trace.gz"
    for damaged in (second[:-20], second[:-6] + b"\x55" * 6, b"\x1f\x8c" + second[2:]):
        path.write_bytes(first + damaged + third)
        with pytest.raises(TraceError, match="the compressed file is torn"):
            read(path)


def test_zeros_between_and_behind_gzip_members_are_nothing(tmp_path: Path) -> None:
    first, second = appended(1, 2)
    path = tmp_path / "trace.gz"
    path.write_bytes(first + bytes(700) + second + bytes(512))
    assert len(ids(path)) == 80


@given(st.lists(st.binary(max_size=300), max_size=4), st.integers(1, 40))
def test_members_are_unpacked_as_gzip_does_it(parts: list[bytes], size: int) -> None:
    packed = b"".join(map(gzip.compress, parts))
    unpacking, found = _Gunzip(io.BufferedReader(io.BytesIO(packed), 8)), b""
    while data := unpacking.read1(size):
        assert len(data) <= size
        found += data
    assert found == b"".join(parts)


@pytest.mark.parametrize("kept", [100, 600, 1500])
def test_a_torn_archive_is_told(tmp_path: Path, kept: int) -> None:
    path = archive(tmp_path / "trace", "w:", ("a", line(1, "a") * 50), ("b", line(1, "b")))
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(TraceError):
        read(path)


def test_flipped_bits_are_told_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "trace.gz"
    data = bytearray(gzip.compress(b"".join(line(time, time * 7919) for time in range(300))))
    for place in range(20, len(data), 151):
        damaged = bytearray(data)
        damaged[place] ^= 0x40
        path.write_bytes(damaged)
        with pytest.raises(TraceError):
            read(path)


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        ({"max_line_bytes": 99}, "line 1: longer than 99 bytes"),
        ({"max_accesses": 49}, "line 1: more than 49 block accesses"),
        ({"max_requests": 1}, "line 2: more than 1 requests"),
        ({"max_bytes": 300}, "more than 300 unpacked bytes"),
    ],
)
def test_what_is_read_is_bounded(tmp_path: Path, limits: dict[str, int], sentence: str) -> None:
    path = tmp_path / "trace"
    path.write_bytes(gzip.compress(line(1, *range(50)) * 2))
    with pytest.raises(TraceError, match=sentence):
        read(path, **limits)


def test_what_lies_on_disk_to_be_sorted_is_bounded(tmp_path: Path) -> None:
    path = archive(tmp_path / "trace.tar", "w:", ("a", line(1, "x" * 1000) * 20))
    with pytest.raises(TraceError, match="line 9: more than 10,000 bytes to be put in the order of their times"):
        read(path, max_sorted_bytes=10_000)
    assert len(read(path, max_sorted_bytes=30_000)) == 20


def test_what_has_to_be_sorted_lies_where_the_caller_says(tmp_path: Path) -> None:
    path = archive(tmp_path / "trace.tar", "w:", ("a", line(1, 1)))
    with pytest.raises(FileNotFoundError), open_trace(path, scratch=tmp_path / "nowhere") as trace:
        list(trace)


def test_a_file_that_is_no_part_of_a_folders_trace_is_named_once(tmp_path: Path) -> None:
    (tmp_path / "0-notes.txt").write_text("not mine\n" * 30)
    (tmp_path / "1.jsonl").write_bytes(line(1, "a") + line(3, "c"))
    (tmp_path / "2.jsonl").write_bytes(b"damaged\n" + line(2, "b"))
    (tmp_path / "3.zip").write_bytes(b"PK\x03\x04")
    (tmp_path / "4.empty").touch()
    with pytest.raises(TraceError, match=r"3\.zip is packed with zip"):
        read(tmp_path)
    faults = CountFaults()
    with open_trace(tmp_path, faults=faults) as trace:
        assert [name for request in trace for name in request.block_ids] == ["a", "b", "c"]
    told = " ".join(faults.sentences)
    assert faults.count == 3
    assert f"{tmp_path}/0-notes.txt is no part of this trace: none of its first lines has “block_ids”" in told
    assert "2.jsonl, line 1: not JSON" in told


def test_a_folder_without_any_trace_is_told_by_its_first_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("no trace\n")
    (tmp_path / "b.txt").write_text("no trace\n")
    with pytest.raises(TraceError, match=r"a\.txt, line 1: not JSON"):
        read(tmp_path)


def test_files_are_bounded(tmp_path: Path) -> None:
    path = archive(tmp_path / "trace.tar", "w:", *((str(n), line(n, n)) for n in range(4)))
    with pytest.raises(TraceError, match="more than 3 files"):
        read(path, max_files=3)


def test_a_bomb_is_read_no_further_than_the_bound(tmp_path: Path) -> None:
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(line(1, 1) + b"\n" * (8 << 20)))
    with pytest.raises(TraceError, match="more than 1,048,576 unpacked bytes"):
        read(path, max_bytes=1 << 20)


def test_a_header_that_claims_gigabytes_is_refused(tmp_path: Path) -> None:
    """Extended headers are read into memory at once."""
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, 4 << 30
    path = archive(tmp_path / "trace.tar", "w:", ("a", line(1, 1)))
    path.write_bytes(info.tobuf() + bytes(2 << 20) + path.read_bytes())
    with pytest.raises(TraceError, match="a header of more than 1,048,576 bytes"):
        read(path)


def test_whoever_waits_for_a_trace_to_be_sorted_is_called_and_may_end_it(tmp_path: Path) -> None:
    path = archive(tmp_path / "logs.tar", "w", ("1.jsonl", line(1, "a" * 1000) * 1000))
    calls = 0

    def ends_at_the_third() -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        open_trace(path, while_opening=ends_at_the_third)
    calls = 3
    with open_trace(path, while_opening=ends_at_the_third) as trace:
        called = calls
        assert sum(1 for _ in trace) == 1000
    assert calls == called > 5
