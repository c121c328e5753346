"""The log of a process stays below a size, for everybody who writes into it, and nothing of its own lines is lost."""

import logging
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from culture.lib.files import open_private
from culture.lib.process.log_rotation import LogRotation, rotate_own_log, rotated

PROGRAM = """
import logging, os, sys
from pathlib import Path
from culture.lib.log_lines import start_logging
from culture.lib.process.log_rotation import rotate_own_log
start_logging()
rotate_own_log(Path(sys.argv[1]), max_bytes=2_000, copies=3)
for number in range(int(sys.argv[2]), int(sys.argv[3])):
    logging.info("line %d", number)
print("printed", flush=True)
os.write(2, b"written\\n")
"""


def run(file: Path, first: int, last: int) -> None:
    """A program that logs so many lines into the file."""
    with file.open("ab") as out:
        command = [sys.executable, "-c", PROGRAM, str(file), str(first), str(last)]
        subprocess.run(command, stdout=out, stderr=out, check=True)


def test_a_large_file_is_put_aside_and_the_newest_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "spark.log"
    run(file, 0, 60)
    before = {each.name for each in tmp_path.iterdir()}
    assert before == {"spark.log", "spark.log.1"}
    run(file, 60, 600)
    files = [*(tmp_path / f"spark.log.{number}" for number in (3, 2, 1)), file]
    assert sorted(tmp_path.iterdir()) == sorted(files)
    assert all(stat.S_IMODE(each.stat().st_mode) == 0o600 for each in files[:-1])
    assert all(2_000 <= each.stat().st_size < 2_200 for each in files[:-1]) and file.stat().st_size < 2_200
    lines = [line for each in files for line in each.read_text().splitlines()]
    numbers = [int(line.rpartition(" ")[2]) for line in lines[:-2]]
    assert numbers == list(range(numbers[0], 600)), "the last ones, without a hole"
    assert sorted(lines[-2:]) == ["printed", "written"]


def test_a_log_that_is_too_long_begins_anew_for_all_who_write_into_it(tmp_path: Path) -> None:
    file = tmp_path / "log" / "spark-claude.log"
    agent = open_private(file, os.O_WRONLY | os.O_APPEND)
    handler, record = LogRotation(file, max_bytes=100), logging.makeLogRecord({})
    for number in range(30):
        # Its programs write into the same file.
        os.write(agent, f"line {number}\n".encode())
        handler.emit(record)
        assert file.stat().st_size < 100
    os.close(agent)
    kept = rotated(file).read_text() + file.read_text()
    assert kept.split("\n")[-2] == "line 29"
    assert kept.count("line") > 10
    assert rotated(file).stat().st_mode & 0o777 == 0o600


def test_a_file_that_is_not_the_output_is_left_alone(tmp_path: Path) -> None:
    before = list(logging.getLogger().handlers)
    (tmp_path / "elsewhere").touch()
    rotate_own_log(tmp_path / "elsewhere")
    rotate_own_log(tmp_path / "missing")
    assert logging.getLogger().handlers == before


def test_output_that_was_not_opened_for_appending_leaves_no_hole(tmp_path: Path) -> None:
    file = tmp_path / "spark.log"
    with file.open("wb") as out:
        subprocess.run([sys.executable, "-c", PROGRAM, str(file), "0", "600"], stdout=out, stderr=out, check=True)
    assert b"\0" not in file.read_bytes() and file.stat().st_size < 2_200


def test_a_log_that_cannot_be_rotated_is_told_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "spark.log"
    file.write_bytes(b"x" * 100)
    rotated(file).mkdir()
    handler = LogRotation(file, max_bytes=100)
    for _ in range(3):
        handler.emit(logging.makeLogRecord({}))
    assert capsys.readouterr().err.count("cannot be rotated") == 1
    assert file.stat().st_size == 100


MOVED = PROGRAM.replace(
    "for number",
    """
if sys.argv[4] == "new":
    os.rename(sys.argv[1], sys.argv[1] + ".moved")
    Path(sys.argv[1]).touch(0o600)
elif sys.argv[4] == "missing":
    os.rename(sys.argv[1], sys.argv[1] + ".moved")
for number""",
)


@pytest.mark.parametrize("at_path", ["missing", "new"])
def test_a_log_that_was_moved_away_stays_bounded_and_begins_again_at_its_path(tmp_path: Path, at_path: str) -> None:
    file, moved = tmp_path / "spark.log", tmp_path / "spark.log.moved"
    with file.open("ab") as out:
        command = [sys.executable, "-c", MOVED, str(file), "0", "100", at_path]
        subprocess.run(command, stdout=out, stderr=out, check=True)
    assert all("cannot be rotated" not in each.read_text() for each in (file, moved))
    assert 2_000 <= moved.stat().st_size < 2_200
    assert file.read_text().endswith("written\n") and file.stat().st_mode & 0o777 == 0o600
    lines = [line for each in (moved, *sorted(tmp_path.glob("*.1")), file) for line in each.read_text().splitlines()]
    assert [int(line.rpartition(" ")[2]) for line in lines if "line" in line] == list(range(100))


THREADS = """
import logging, sys
from pathlib import Path
from threading import Thread
from culture.lib.log_lines import start_logging
from culture.lib.process.log_rotation import rotate_own_log
start_logging()
rotate_own_log(Path(sys.argv[1]), max_bytes=20_000, copies=40)
def write(name):
    for number in range(1_000):
        logging.info("%s %d", name, number)
threads = [Thread(target=write, args=(name,)) for name in "abcd"]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def test_no_line_of_another_thread_is_lost(tmp_path: Path) -> None:
    file = tmp_path / "spark.log"
    with file.open("ab") as out:
        subprocess.run([sys.executable, "-c", THREADS, str(file)], stdout=out, stderr=out, check=True)
    lines = [line.split()[-2:] for each in tmp_path.iterdir() for line in each.read_text().splitlines()]
    assert sorted(lines) == sorted([name, str(number)] for name in "abcd" for number in range(1_000))
