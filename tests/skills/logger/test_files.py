"""Appending: all or nothing, kept within bounds while the disk takes nothing, told once."""

import os
import stat
from pathlib import Path

import pytest

from culture.runtime import Runtime
from culture.skills.logger.files import Files, append
from tests.skills.logger.conftest import Disk
from tests.support.clock import Clock

MOMENT = "2026-03-19 10:00:00"


def line(text: str) -> bytes:
    return f"{MOMENT}\tspark-ori\t{text}\n".encode()


class Log:
    """A file that can be written or not, as the test wants, and those who write it."""

    def __init__(self, folder: Path, room: int = 1000) -> None:
        self.told: list[str] = []
        self.clock = Clock()
        runtime = Runtime()
        runtime.monotonic = self.clock
        self.files = Files(self.told.append, room, 5.0, runtime=runtime)
        self.path = folder / "a" / "day.log"
        self.other = folder / "b" / "day.log"

    def block(self) -> None:
        """Nobody, not even root, writes into a folder."""
        self.path.mkdir(parents=True)

    def free(self) -> None:
        self.path.rmdir()
        self.clock.now += 5

    def write(self, *texts: str) -> None:
        self.files.write([(self.path, line(text)) for text in texts])


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path)


def test_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "a" / "day.log"
    append(path, b"x\n")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in (path.parent, path.parent.parent)] == [0o700, 0o700]


def test_a_link_elsewhere_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "day.log").symlink_to(tmp_path / "precious")
    with pytest.raises(OSError):
        append(tmp_path / "day.log", b"x\n")
    assert not (tmp_path / "precious").exists()


def test_a_line_that_was_interrupted_stays_apart(tmp_path: Path) -> None:
    path = tmp_path / "day.log"
    path.write_bytes(b"one\ntw")
    append(path, b"three\n")
    append(path, b"four\n")
    assert path.read_bytes() == b"one\ntw\nthree\nfour\n"


def test_what_does_not_fit_leaves_no_half_line(small_disk: Disk) -> None:
    path = small_disk.folder / "day.log"
    append(path, b"x" * 3000 + b"\n")
    with pytest.raises(OSError):
        append(path, (b"y" * 999 + b"\n") * 20)
    assert path.stat().st_size == 3001
    small_disk.grow()
    append(path, (b"y" * 999 + b"\n") * 20)
    assert path.stat().st_size == 23001


def test_lines_wait_and_are_written_in_order(log: Log) -> None:
    log.block()
    log.write("one")
    log.write("two")
    assert log.files.waiting == 2
    assert log.files.patience == 5.0
    log.free()
    log.write("three")
    assert log.path.read_bytes() == line("one") + line("two") + line("three")
    assert log.files.patience is None
    assert [text.partition(": ")[0] for text in log.told] == [
        f"cannot write {log.path}",
        "logs are written again; no lines were lost",
    ]


def test_nobody_is_told_twice(log: Log) -> None:
    log.block()
    for _ in range(3):
        log.write("x")
        log.clock.now += 5
    assert len(log.told) == 1
    log.free()
    log.files.write([])
    log.files.write([])
    assert len(log.told) == 2


def test_the_disk_is_not_tried_before_its_time(log: Log) -> None:
    log.block()
    log.write("one")
    log.path.rmdir()
    log.clock.now += 4.9
    log.write("two")
    assert not log.path.exists()
    log.clock.now += 0.1
    log.files.write([])
    assert log.path.read_bytes() == line("one") + line("two")


def test_at_the_end_it_is_tried_at_once(log: Log) -> None:
    log.block()
    log.write("one")
    log.path.rmdir()
    log.files.write([], now=True)
    assert log.path.read_bytes() == line("one")


def test_one_bad_file_does_not_hold_up_the_others(log: Log) -> None:
    log.block()
    log.write(*("x" * 50 for _ in range(50)))  # more than there is room for
    log.files.write([(log.other, line("fine")), (log.path, line("lost"))])
    assert log.other.read_bytes() == line("fine")


def test_memory_is_bounded_and_the_log_says_what_is_missing(log: Log) -> None:
    log.block()
    for number in range(100):
        log.write(f"{number:03}")
        log.clock.now += 5
    kept = 1000 // len(line("000"))
    assert log.files.waiting == kept
    assert log.files.lost == 100 - kept
    log.free()
    log.write("after")
    written = log.path.read_text().splitlines()
    assert written[kept - 1 :] == [
        f"{MOMENT}\tspark-ori\t{kept - 1:03}",
        f"{MOMENT}\t--\t{100 - kept} lines are missing here: the disk took none",
        f"{MOMENT}\tspark-ori\tafter",
    ]
    assert log.told[1:] == [f"logs are written again; {100 - kept} lines were lost"]
    assert log.files.lost == 0


def test_lines_that_have_room_again_come_after_the_note(log: Log) -> None:
    log.block()
    log.other.mkdir(parents=True)
    log.files.write([(log.other, line("x" * 800))])
    log.write("first", "y" * 500)
    log.other.rmdir()
    log.clock.now += 5
    log.write("later")
    log.free()
    log.files.write([])
    note = f"{MOMENT}\t--\t1 lines are missing here: the disk took none\n".encode()
    assert log.path.read_bytes() == line("first") + note + line("later")


def test_files_that_are_moved_or_deleted_are_made_anew(log: Log) -> None:
    log.write("one")
    log.path.rename(log.path.with_suffix(".1"))
    log.write("two")
    assert log.path.with_suffix(".1").read_bytes() == line("one")
    assert log.path.read_bytes() == line("two")
    log.path.unlink()
    log.path.with_suffix(".1").unlink()
    log.path.parent.rmdir()
    log.write("three")
    assert log.path.read_bytes() == line("three")
    assert log.told == []


def test_no_descriptor_stays_open(log: Log) -> None:
    before = len(os.listdir("/proc/self/fd"))
    log.write("one")
    log.write("two")
    assert len(os.listdir("/proc/self/fd")) == before
