"""Following a log that another process writes and rotates, against what was written."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from scripts.follow import LogFile

PIECES = st.lists(st.one_of(st.text("ab\n", max_size=6), st.just("ROTATE"), st.just("READ")), max_size=30)


@given(pieces=PIECES)
def test_every_line_is_seen_once_and_in_order_whatever_is_written_read_and_rotated(
    tmp_path_factory: object, pieces: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("log")  # type: ignore[attr-defined]
    path = folder / "web.log"
    path.touch()
    log = LogFile(path)
    written, seen = "", []
    for number, piece in enumerate(pieces):
        if piece == "READ":
            seen += log.new_lines()
        elif piece == "ROTATE":
            # One rotation between two reads is what a log of 10 MiB and five reads a second can do.
            seen += log.new_lines()
            path.rename(folder / f"web.log.{number}")
            path.touch()
        else:
            with path.open("a") as file:
                file.write(piece)
            written += piece
    seen += log.new_lines()
    seen += log.new_lines()
    log.close()
    assert seen == written.split("\n")[:-1]


def test_what_an_earlier_start_wrote_is_not_repeated(tmp_path: Path) -> None:
    path = tmp_path / "web.log"
    path.write_text("yesterday\n")
    log = LogFile(path)
    path.write_text("yesterday\ntoday\n")
    assert log.new_lines() == ["today"]
    log.close()


def test_a_log_that_does_not_exist_yet_is_awaited(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "web.log")
    assert log.new_lines() == []
    (tmp_path / "web.log").write_bytes(b"half a \xff line")
    assert log.new_lines() == []
    with (tmp_path / "web.log").open("a") as file:
        file.write(" and the rest\n")
    assert log.new_lines() == ["half a � line and the rest"]
    log.close()
