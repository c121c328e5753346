"""Programs in the background: ready, ended early, never ready, and none that a signal leaves behind unrecorded."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from culture.lib.process.background import LAST_LINES, BackgroundProcess, EndedEarly, last_lines
from culture.lib.process.children import ChildProcesses, Interrupts, TooLate, end_child
from culture.lib.process.orphans import of_sessions
from culture.protocol.vocabulary import Exit
from tests.support.waiting import PATIENCE

STAY = "import time; print('here', flush=True); time.sleep(600)"


@pytest.fixture
def started(tmp_path: Path) -> Iterator[list[BackgroundProcess]]:
    made: list[BackgroundProcess] = []
    yield made
    for process in made:
        process.kill()
        with pytest.raises(EndedEarly):
            process.wait_until(lambda _: None, PATIENCE)


def python(code: str, log: Path, **more: object) -> BackgroundProcess:
    return BackgroundProcess("the program", [sys.executable, "-c", code], log, **more)  # type: ignore[arg-type]


def test_it_is_ready_when_the_probe_says_so(tmp_path: Path, started: list[BackgroundProcess]) -> None:
    log = tmp_path / "log" / "program.log"
    started.append(process := python(STAY, log))
    assert process.wait_until(lambda pid: pid if "here" in log.read_text() else None, PATIENCE) == process.pid
    assert os.getsid(process.pid) == process.pid
    assert [each.pid for each in of_sessions({process.pid})] == [process.pid]
    assert log.stat().st_mode & 0o777 == 0o600


def test_one_that_ends_early_tells_what_it_printed_this_time(tmp_path: Path) -> None:
    log = tmp_path / "program.log"
    log.write_text("of an earlier run\n")
    code = f"import sys; print(*range(30), sep=chr(10)); sys.exit({int(Exit.WRONG_CONFIGURATION)})"
    with pytest.raises(EndedEarly) as early:
        python(code, log).wait_until(lambda _: None, PATIENCE)
    assert early.value.text.splitlines() == [str(number) for number in range(30 - LAST_LINES, 30)]
    assert early.value.code is Exit.WRONG_CONFIGURATION


def test_one_that_is_killed_without_a_word_tells_where_to_look(tmp_path: Path) -> None:
    log = tmp_path / "program.log"
    with pytest.raises(EndedEarly, match=rf"the program ended at once; see {log}") as early:
        python("import os; os.kill(os.getpid(), 9)", log).wait_until(lambda _: None, PATIENCE)
    assert (early.value.returncode, early.value.code) == (-signal.SIGKILL, Exit.FAILED)


def test_one_that_is_never_ready_is_none(tmp_path: Path, started: list[BackgroundProcess]) -> None:
    started.append(process := python(STAY, tmp_path / "program.log"))
    assert process.wait_until(lambda _: None, 0.05) is None
    assert process.poll() is None


def test_some_variables_are_not_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CULTURE_TOKEN", "secret")
    monkeypatch.setenv("OTHER", "kept")
    code = "import os; print(os.environ.get('CULTURE_TOKEN'), os.environ.get('OTHER'), os.getcwd())"
    with pytest.raises(EndedEarly, match=f"None kept {tmp_path}"):
        python(code, tmp_path / "log", without=("CULTURE_TOKEN",), cwd=tmp_path).wait_until(lambda _: None, PATIENCE)


def test_a_log_that_was_rotated_is_read_from_its_beginning(tmp_path: Path) -> None:
    log = tmp_path / "program.log"
    log.write_text("one\ntwo\nthree\n")
    assert last_lines(log, 2) == "two\nthree"
    assert last_lines(log, 2, start=8) == "three"
    assert last_lines(log, 2, start=1_000) == "two\nthree"


# Starts children until a signal comes, then says which it knows of.
FAMILY = """
import signal, subprocess
from culture.lib.process.children import ChildProcesses, Interrupts
interrupts = Interrupts()
signal.signal(signal.SIGINT, interrupts)
children = ChildProcesses(interrupts.held)
print("ready", flush=True)
try:
    for number in range(10_000):
        children.launch(str(number), lambda: subprocess.Popen(["sleep", "600"]))
except KeyboardInterrupt:
    print(*[child.pid for child in children.all().values()], flush=True)
    for child in children.all().values():
        child.kill()
"""


@pytest.mark.parametrize("moment", [0.0, 0.001, 0.003, 0.007, 0.02, 0.05])
def test_ctrl_c_at_any_moment_knows_every_child(moment: float) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", FAMILY], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as family:
        assert family.stdout is not None and family.stdout.readline() == "ready\n"
        time.sleep(moment)  # the moment of the signal is what this is about
        family.send_signal(signal.SIGINT)
        recorded = {int(pid) for pid in family.stdout.readline().split()}
        family.wait(PATIENCE)
    left = {each.pid for each in of_sessions({family.pid})}
    assert left <= recorded, "a child that nobody knows of"


def test_nothing_is_started_while_everything_is_ended() -> None:
    children = ChildProcesses(Interrupts().held)
    child = children.launch("one", lambda: subprocess.Popen(["sleep", "600"]))
    assert children.exit_code("one", 0) is None and children.exit_code("two", 0) is None
    assert dict(children.all()) == {"one": child}
    with pytest.raises(TooLate):
        children.launch("two", lambda: subprocess.Popen(["sleep", "600"]))
    child.terminate()
    assert end_child(child, PATIENCE, PATIENCE)
    assert children.exit_code("one", 0) == -signal.SIGTERM


def test_a_child_that_ignores_sigterm_is_killed() -> None:
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); print('ready', flush=True); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdout.readline() == b"ready\n"
        child.terminate()
        assert end_child(child, 0.05, PATIENCE)
        assert child.returncode == -signal.SIGKILL
