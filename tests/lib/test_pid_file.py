"""The file of a running process: true while it lives, void when it is killed, and never a reason to signal another."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Timer

import pytest

from culture.lib.files import FileLock, LockTaken
from culture.lib.process import handle, pid_file
from culture.lib.process.pid_file import PidFile, ProcessNote, running
from tests.support.waiting import PATIENCE

HOLDER = """
import os, sys, time
from pathlib import Path
from tests.lib.test_pid_file import ExampleNote
from culture.lib.process.pid_file import PidFile
file = PidFile(Path(sys.argv[1]), ExampleNote(os.getpid(), time.time(), "one"))
file.acquire()
file.change(places=(("127.0.0.1", 6667),))
print("held", flush=True)
time.sleep(600)
"""


@dataclass(frozen=True)
class ExampleNote(ProcessNote):
    name: str
    places: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class OtherNote(ProcessNote):
    other: int


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run" / "one.pid"


@pytest.fixture
def holder(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that holds the file."""
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"held\n"
        yield process
        process.kill()


def test_the_note_of_a_living_process_is_found(path: Path, holder: subprocess.Popen[bytes]) -> None:
    note = pid_file.running(path, ExampleNote)
    assert note is not None
    assert (note.pid, note.name, note.places) == (holder.pid, "one", (("127.0.0.1", 6667),))
    assert pid_file.all_running(path.parent, ExampleNote) == {"one": note}
    assert pid_file.running(path, OtherNote) is None and pid_file.all_running(path.parent, OtherNote) == {}
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_second_process_is_refused_and_told_who_is_there(path: Path, holder: subprocess.Popen[bytes]) -> None:
    with pytest.raises(LockTaken) as taken:
        PidFile(path, ExampleNote(os.getpid(), 0.0, "two")).acquire()
    first = ExampleNote.parse(taken.value.note)
    assert first is not None and first.pid == holder.pid


def test_kill_9_voids_the_file_and_leaves_its_last_note(path: Path, holder: subprocess.Popen[bytes]) -> None:
    holder.kill()
    holder.wait(PATIENCE)
    assert pid_file.running(path, ExampleNote) is None
    last = pid_file.last_note(path, ExampleNote)
    assert last is not None and last.pid == holder.pid
    assert pid_file.end(path, ExampleNote, PATIENCE) is None
    file = PidFile(path, ExampleNote(os.getpid(), 0.0, "two"))
    file.acquire()
    assert pid_file.last_note(path, ExampleNote) == file.note
    file.release()
    assert pid_file.last_note(path, ExampleNote) is None


def test_the_process_that_holds_the_file_is_ended(path: Path, holder: subprocess.Popen[bytes]) -> None:
    assert pid_file.end(path, ExampleNote, PATIENCE) is True
    assert holder.wait(PATIENCE) == -signal.SIGTERM
    assert pid_file.end(path, ExampleNote, PATIENCE) is None


def test_a_reused_pid_is_never_signalled(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file names a process that is not its holder, or another holder came between the look and the signal."""
    with subprocess.Popen(["sleep", "600"]) as bystander:
        path.parent.mkdir()
        path.write_text(str(ExampleNote(bystander.pid, 0.0, "one")))
        assert pid_file.end(path, ExampleNote, PATIENCE) is None
        notes = [ExampleNote(bystander.pid, 1.0, "one"), ExampleNote(bystander.pid, 2.0, "one")]
        monkeypatch.setattr(pid_file, "running", lambda path, kind: notes.pop(0))
        assert pid_file.end(path, ExampleNote, PATIENCE) is None
        with handle.pinned(bystander.pid) as pinned:
            assert pinned is not None and not handle.is_gone(pinned, 0)
        bystander.kill()


def test_a_process_that_changed_its_note_meanwhile_is_still_the_same(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with subprocess.Popen(["sleep", "600"]) as process:
        notes = [ExampleNote(process.pid, 1.0, "one"), ExampleNote(process.pid, 1.0, "stopping")]
        monkeypatch.setattr(pid_file, "running", lambda path, kind: notes.pop(0))
        assert pid_file.end(path, ExampleNote, PATIENCE) is True
        assert process.wait(PATIENCE) == -signal.SIGTERM


def test_an_exception_leaves_the_note_and_frees_the_file(path: Path) -> None:
    file = PidFile(path, ExampleNote(os.getpid(), 0.0, "one"))
    file.acquire()
    with pytest.raises(KeyboardInterrupt), file.releasing():
        raise KeyboardInterrupt
    assert pid_file.running(path, ExampleNote) is None and pid_file.last_note(path, ExampleNote) == file.note
    file.acquire()
    with file.releasing():
        assert pid_file.running(path, ExampleNote) == file.note
    assert not path.exists()


@pytest.mark.parametrize(
    "text",
    ["", "7", "[]", "null", '"pid"', "{}", '{"pid": 7}', '{"pid": "7", "since": 0, "name": "x"}', '{"pid": true}', "{"],
)
def test_what_is_no_note_is_none(text: str) -> None:
    assert ExampleNote.parse(text) is None


def test_fields_of_a_newer_version_are_left_out() -> None:
    text = '{"pid": 7, "since": 1, "name": "one", "colour": "red"}'
    assert ExampleNote.parse(text) == ExampleNote(7, 1, "one")


def test_note_of_a_dead_process_is_not_taken_for_the_one_of_the_new_holder(tmp_path: Path) -> None:
    """A new process locks the file before it writes its note: until then the old one stands there."""
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    path = tmp_path / "x.pid"
    lock = FileLock(path)
    lock.acquire(str(ProcessNote(dead.pid, 1.0)))
    writer = Timer(0.02, lambda: lock.write(str(ProcessNote(os.getpid(), 2.0))))
    writer.start()
    assert running(path, ProcessNote) == ProcessNote(os.getpid(), 2.0)
    writer.join()
    lock.release()
