"""PYTEST_DONT_REWRITE: notes which functions a test calls, in its own process and in those that it starts.

This file is copied into the recorded environment, where each Python begins with ``begin()`` (a line of a ``.pth``
file), and pytest loads it as a plugin. It therefore imports the standard library alone. A process of a test that has no
``CULTURE_RECORDED_TEST`` in its environment, since the test emptied that, finds the test by the processes above it.
Lines are appended with one system call each, so that what a process called is known also when it was killed.
"""

import os
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

VARIABLE = "CULTURE_RECORDED_TEST"
_FOLDER = Path(sys.prefix) / "recording"


class _Recorder:
    """The calls of this process: one line ``test, path, function`` for the first call of a function by a test."""

    def __init__(self, root: Path) -> None:
        self._prefix = f"{root}/culture/"
        self._skip = len(f"{root}/")
        self._seen: dict[int, object] = {}
        self._test = ""
        self._file = os.open(_FOLDER / f"{os.getpid()}.calls", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC)
        os.register_at_fork(after_in_child=self._reopen)

    def _reopen(self) -> None:
        self._file = os.open(_FOLDER / f"{os.getpid()}.calls", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC)

    def set_test(self, test: str) -> None:
        """Attribute the calls from now on to this test."""
        self._test = test
        self._seen.clear()
        for each in _FOREIGN:
            self._seen[each] = None

    def trace(self, frame: FrameType, _event: str, _argument: object) -> None:
        """Note a call; the trace function of the interpreter."""
        code = frame.f_code
        key = id(code)
        if key in self._seen:
            return
        self._seen[key] = code  # kept, so that the number stays its own
        name = code.co_filename
        if not name.startswith(self._prefix):
            _FOREIGN[key] = code
            return
        if self._test:
            function = code.co_qualname.replace(".<locals>", "")
            os.write(self._file, f"{self._test}\t{name[self._skip :]}\t{function}\n".encode())


_FOREIGN: dict[int, object] = {}
_recorder: list[_Recorder] = []


def begin() -> None:
    """Record this process from now on, if a recording is under way."""
    root = _FOLDER / "root"
    if _recorder or not root.exists():
        return
    recorder = _Recorder(Path(root.read_text()))
    recorder.set_test(os.environ.get(VARIABLE) or _test_above())
    _recorder.append(recorder)
    sys.settrace(recorder.trace)
    threading.settrace(recorder.trace)


def _test_above() -> str:
    """Return the test that runs in the nearest process above this one, empty if there is none."""
    pid = os.getpid()
    for _ in range(20):
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
            return (_FOLDER / f"{pid}.test").read_text()
        except FileNotFoundError:
            continue
        except (OSError, ValueError, IndexError):
            return ""
    return ""


def _set(test: str) -> None:
    if _recorder:
        os.environ[VARIABLE] = test
        note = _FOLDER / f"{os.getpid()}.test"
        note.write_text(test)
        _recorder[0].set_test(test)
        if sys.gettrace() is None:  # the worker runs tests in a thread that was not made by `threading`
            sys.settrace(_recorder[0].trace)


def pytest_runtest_protocol(item: "pytest.Item") -> None:
    """Attribute calls to the test that begins."""
    _set(item.nodeid)


def pytest_collect_file(file_path: Path) -> None:
    """Attribute what a module of tests calls at its import to nothing."""
    _set("")


def pytest_runtest_logreport(report: "pytest.TestReport") -> None:
    """Note outcome and duration of each phase of a test."""
    if _recorder and "PYTEST_XDIST_WORKER" in os.environ:
        with (_FOLDER / f"{os.getpid()}.outcomes").open("a", encoding="utf-8") as file:
            file.write(f"{report.nodeid}\t{report.outcome}\t{report.duration:.3f}\n")
