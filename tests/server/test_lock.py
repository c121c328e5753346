"""One holder at a time, known from the kernel and not from what a file says."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from culture.config.lockfile import LockFile, LockTaken, note_of_holder
from culture.server.errors import StartError
from culture.server.lock import DataLock

HOLD = """
import sys
from pathlib import Path
from culture.config.lockfile import LockFile
LockFile(Path(sys.argv[1])).acquire("theirs")
print("held", flush=True)
input()
"""


def holder(path: Path) -> subprocess.Popen[str]:
    """Another process that holds the file."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    return process


def test_the_note_is_there_for_as_long_as_the_file_is_held(tmp_path: Path) -> None:
    lock = LockFile(tmp_path / "lock")
    assert note_of_holder(lock.path) is None
    lock.acquire("a longer note")
    lock.write("ours")
    assert note_of_holder(lock.path) == "ours"
    with pytest.raises(LockTaken, match="ours"):
        LockFile(lock.path).acquire("second")
    lock.release()
    lock.release()
    assert note_of_holder(lock.path) is None and lock.path.exists()


@pytest.mark.fault("B15")
def test_a_killed_holder_lets_go(tmp_path: Path) -> None:
    """B15: what it wrote stays, and nobody believes it."""
    path = tmp_path / "lock"
    with holder(path) as process:
        with pytest.raises(LockTaken, match="theirs"):
            LockFile(path).acquire("ours")
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert path.read_text() == "theirs" and note_of_holder(path) is None
        lock = LockFile(path)
        lock.acquire("ours")
    assert note_of_holder(path) == "ours"
    lock.release(remove=True)
    assert not path.exists()


def test_looking_does_not_keep_anybody_from_holding(tmp_path: Path) -> None:
    path, done = tmp_path / "lock", threading.Event()

    def look() -> None:
        while not done.is_set():
            note_of_holder(path)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        for _ in range(50):
            lock = LockFile(path)
            lock.acquire("ours")
            lock.release(remove=True)
    finally:
        done.set()
        looking.join()


def test_a_symlink_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        LockFile(tmp_path / "lock").acquire("ours")
    with pytest.raises(OSError, match="symbolic links"):
        note_of_holder(tmp_path / "lock")


@pytest.mark.fault("B14")
def test_a_data_folder_has_one_server(tmp_path: Path) -> None:
    """B14"""
    first, second = DataLock(tmp_path / "data"), DataLock(tmp_path / "data")
    first.acquire()
    with pytest.raises(StartError, match=rf"in use by another server \(pid {os.getpid()}\)"):
        second.acquire()
    first.release()
    second.acquire()
    second.release()


def test_a_data_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StartError, match="cannot use the data folder"):
        DataLock(tmp_path / "file" / "data").acquire()
