"""Atomic file replacement and file locks: what is on disk when, and who holds what, also after ``kill -9``."""

import errno
import fcntl
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from culture.lib import files
from culture.lib.files import (
    FileLock,
    LockTaken,
    create_private,
    file_stamp,
    note_of_holder,
    place_new_file,
    read_private,
    replace_file,
    write_lock,
)
from culture.runtime import REAL, Runtime

HOLD = """
import sys
from pathlib import Path
from culture.lib.files import FileLock
FileLock(Path(sys.argv[1])).acquire("theirs")
print("held", flush=True)
input()
"""
REPLACE_FOR_EVER = """
import sys
from pathlib import Path
from culture.lib.files import replace_file
print("begins", flush=True)
while True:
    for letter in b"ab":
        replace_file(Path(sys.argv[1]), bytes([letter]) * 300_000)
"""
COUNT = """
import sys
from pathlib import Path
from culture.lib.files import replace_file, write_lock
path = Path(sys.argv[1])
for _ in range(50):
    with write_lock(path):
        replace_file(path, str(int(path.read_text()) + 1), durable=False)
"""


@contextmanager
def program(text: str, path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has said its first line."""
    command = [sys.executable, "-c", text, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stdout.readline()
            yield process
        finally:
            process.kill()


class LoggedDisk(Runtime):
    """The real disk; it logs the calls that make a replacement durable, in their order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[str] = []
        replace = os.replace

        def logged_fsync(file: int) -> None:
            of = os.fstat(file)
            self.calls.append("fsync folder" if stat.S_ISDIR(of.st_mode) else f"fsync {of.st_size} bytes")
            os.fsync(file)

        def logged_replace(source: Path, target: Path) -> None:
            self.calls.append("rename")
            replace(source, target)

        self.fsync = logged_fsync
        monkeypatch.setattr(os, "replace", logged_replace)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> LoggedDisk:
    """A runtime that logs what makes a replacement durable."""
    return LoggedDisk(monkeypatch)


def test_contents_are_synced_before_the_name_and_the_folder_after(tmp_path: Path, disk: LoggedDisk) -> None:
    replace_file(tmp_path / "file", b"12345", runtime=disk)
    assert disk.calls == ["fsync 5 bytes", "rename", "fsync folder"]


def test_durability_can_be_left_out(tmp_path: Path, disk: LoggedDisk) -> None:
    replace_file(tmp_path / "file", "text", durable=False, runtime=disk)
    assert disk.calls == ["rename"]


def test_replaced_file_is_private_and_missing_folders_are_made(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "file"
    replace_file(path, "é")
    assert path.read_bytes() == "é".encode() and path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    path.chmod(0o640)
    replace_file(path, b"kept", mode=None)
    assert path.stat().st_mode & 0o777 == 0o640
    replace_file(path, b"readable", mode=0o644)
    assert path.stat().st_mode & 0o777 == 0o644
    assert [each.name for each in path.parent.iterdir()] == ["file"]


def test_symlink_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("target")
    for name in ("file", "file.new"):
        (tmp_path / name).symlink_to(tmp_path / "target")
    replace_file(tmp_path / "file", b"new")
    assert (tmp_path / "target").read_text() == "target"
    assert not (tmp_path / "file").is_symlink() and (tmp_path / "file").read_text() == "new"


def test_prepared_temporary_file_gets_no_contents(tmp_path: Path) -> None:
    """Whoever opened a file in the place of the temporary one beforehand reads nothing of what is written."""
    (tmp_path / "secret.new").touch(0o666)
    with (tmp_path / "secret.new").open("rb") as spy:
        replace_file(tmp_path / "secret", b"secret")
        assert spy.read() == b""


def test_unreadable_temporary_file_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that ran as root may have left it; the folder is ours."""
    (tmp_path / "file.new").touch()
    real = os.open

    def deny(path: Path, flags: int, mode: int = 0) -> int:
        if Path(path).name == "file.new" and not flags & os.O_CREAT:
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path, flags, mode)

    monkeypatch.setattr(os, "open", deny)
    replace_file(tmp_path / "file", b"new")
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_locked_temporary_file_delays_and_does_not_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_WRITER_TIMEOUT", 0.05)
    with FileLock(tmp_path / "file.new").held():
        replace_file(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"


def test_overtaken_writer_publishes_its_own_contents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that is stopped for longer than others wait finds its temporary file again."""
    monkeypatch.setattr(files, "_WRITER_TIMEOUT", 0.05)
    path = tmp_path / "file"
    replace_file(path, "stopped", check=lambda _: replace_file(path, "overtaking"))
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("file", "stopped")]


def test_writer_whose_temporary_file_was_replaced_publishes_nothing(tmp_path: Path) -> None:
    def exchange(temporary: Path) -> None:
        temporary.unlink()
        temporary.write_text("a part")

    replace_file(tmp_path / "file", "old")
    with pytest.raises(OSError, match="busy"):
        replace_file(tmp_path / "file", "new", check=exchange)
    assert (tmp_path / "file").read_text() == "old"


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
def test_failed_replacement_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    replace_file(tmp_path / "file", b"old")
    with monkeypatch.context() as patch:
        patch.setattr(os if call == "replace" else REAL, call, full)
        with pytest.raises(OSError, match="No space"):
            replace_file(tmp_path / "file", b"new")
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("file", b"old")]


def test_check_sees_the_whole_file_and_can_refuse_it(tmp_path: Path) -> None:
    def refuse(path: Path) -> None:
        raise ValueError(path.read_text())

    replace_file(tmp_path / "file", "old")
    with pytest.raises(ValueError, match="new"):
        replace_file(tmp_path / "file", "new", check=refuse)
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("file", "old")]


def test_killed_writer_leaves_one_whole_version(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for _ in range(3):
        with program(REPLACE_FOR_EVER, path) as process:
            while not path.exists():
                pass
            process.send_signal(signal.SIGKILL)
            process.wait()
        assert path.read_bytes() in (b"a" * 300_000, b"b" * 300_000)
        assert {each.name for each in tmp_path.iterdir()} <= {"file", "file.new"}
    replace_file(path, b"next")
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("file", b"next")]


def test_writers_at_the_same_time_tear_nothing(tmp_path: Path) -> None:
    path = tmp_path / "file"

    def write(letter: bytes) -> None:
        for _ in range(30):
            replace_file(path, letter * 50_000, durable=False)

    threads = [threading.Thread(target=write, args=(letter,)) for letter in (b"a", b"b", b"c")]
    for each in threads:
        each.start()
    while any(each.is_alive() for each in threads):
        if path.exists():
            data = path.read_bytes()
            assert data == data[:1] * 50_000
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_file_that_is_not_there_any_more_is_no_leftover(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between a look at a temporary file and its removal another writer may have begun one of its own."""
    path, temporary, opened = tmp_path / "file", tmp_path / "file.new", os.open
    temporary.touch()
    others: list[int] = []
    seen: list[str] = []

    def opens(name: Path, flags: int, *mode: int) -> int:
        if name == temporary and not flags & os.O_CREAT and not others:
            temporary.unlink()
            others.append(opened(temporary, os.O_WRONLY | os.O_CREAT))
            fcntl.flock(others[0], fcntl.LOCK_EX)
            raise FileNotFoundError
        return opened(name, flags, *mode)

    class Others(Runtime):
        """While we wait, the other writer ends."""

        def sleep(self, seconds: float) -> None:
            os.write(others[0], b"theirs")
            os.replace(temporary, path)
            os.close(others[0])
            seen.append(path.read_text())

    monkeypatch.setattr(os, "open", opens)
    replace_file(path, "ours", runtime=Others())
    assert (seen, path.read_text()) == (["theirs"], "ours")
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_changes_of_processes_under_the_write_lock_all_count(tmp_path: Path) -> None:
    path = tmp_path / "counter"
    path.write_text("0")
    command = [sys.executable, "-c", COUNT, str(path)]
    processes = [subprocess.Popen(command) for _ in range(3)]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    assert path.read_text() == "150"


def test_new_file_takes_no_name_from_another(tmp_path: Path) -> None:
    source, path = tmp_path / "part", tmp_path / "whole"
    source.write_text("1")
    place_new_file(source, path)
    source.write_text("2")
    with pytest.raises(FileExistsError):
        place_new_file(source, path)
    assert path.read_text() == "1" and source.exists()


def test_private_file_is_created_and_an_open_one_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "folder" / "file.db"
    create_private(path)
    assert path.stat().st_mode & 0o777 == 0o600
    monkeypatch.setattr(os, "open", lambda *_: pytest.fail("closing this descriptor would drop SQLite's locks"))
    create_private(path)


def test_stamp_differs_after_every_replacement(tmp_path: Path) -> None:
    path = tmp_path / "file"
    assert file_stamp(path) is None and read_private(path) is None
    stamps = set()
    for _ in range(5):
        replace_file(path, b"same")
        contents = read_private(path)
        assert contents == (b"same", file_stamp(path))
        stamps.add(file_stamp(path))
    assert len(stamps) > 1
    path.chmod(0o644)
    read_private(path)
    assert path.stat().st_mode & 0o777 == 0o600


def test_note_is_there_as_long_as_the_lock_is_held(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    assert note_of_holder(lock.path) is None
    lock.acquire("a longer note")
    lock.write("ours")
    assert note_of_holder(lock.path) == "ours"
    with pytest.raises(LockTaken, match="ours"):
        FileLock(lock.path).acquire("second")
    assert not FileLock(lock.path).try_acquire()
    lock.release()
    lock.release()
    assert note_of_holder(lock.path) is None and lock.path.exists()


@pytest.mark.fault("B15")
def test_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    """B15: the note stays in the file, and nobody believes it."""
    path = tmp_path / "lock"
    with program(HOLD, path) as process:
        with pytest.raises(LockTaken, match="theirs"):
            FileLock(path).acquire("ours")
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert path.read_text() == "theirs" and note_of_holder(path) is None
        lock = FileLock(path)
        lock.acquire("ours")
    assert note_of_holder(path) == "ours"
    lock.release(remove=True)
    assert not path.exists()


def test_looking_at_a_lock_keeps_nobody_from_taking_it(tmp_path: Path) -> None:
    path, done = tmp_path / "lock", threading.Event()

    def look() -> None:
        while not done.is_set():
            note_of_holder(path)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        for _ in range(50):
            lock = FileLock(path)
            lock.acquire("ours", timeout=5)
            lock.release(remove=True)
    finally:
        done.set()
        looking.join()


def test_waiting_ends_when_the_holder_releases_or_removes_the_file(tmp_path: Path) -> None:
    """Who waits has the old file open: it must not take the lock of a file that is gone."""
    for remove in (False, True):
        first, second = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
        first.acquire()
        waiting = threading.Thread(target=second.acquire, args=("second", None))
        waiting.start()
        first.release(remove=remove)
        waiting.join(10)
        assert note_of_holder(tmp_path / "lock") == "second"
        second.release()


def test_other_descriptors_of_a_locked_file_may_be_closed(tmp_path: Path) -> None:
    """With POSIX locks the first descriptor that the process closes would release the lock."""
    path = tmp_path / "file"
    with FileLock(path).held("ours"):
        os.close(os.open(path, os.O_RDWR))
        assert note_of_holder(path) == "ours"


def test_lock_is_not_inherited_by_a_started_program(tmp_path: Path) -> None:
    with FileLock(tmp_path / "lock").held():
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, close_fds=False)
    try:
        with FileLock(tmp_path / "lock").held(timeout=5):
            assert child.poll() is None
    finally:
        child.communicate(b"\n")


def test_lock_through_a_symlink_or_in_a_missing_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        FileLock(tmp_path / "lock").acquire("ours")
    with pytest.raises(OSError, match="symbolic links"):
        note_of_holder(tmp_path / "lock")
    with pytest.raises(FileNotFoundError):
        FileLock(tmp_path / "gone" / "lock", parents=False).acquire()
    assert not (tmp_path / "gone").exists()


def test_lock_whose_note_cannot_be_written_is_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = FileLock(tmp_path / "lock")
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left")))
        with pytest.raises(OSError, match="No space"):
            lock.acquire("note")
    with write_lock(tmp_path / "other"):
        assert FileLock(lock.path).try_acquire()
