"""What `make` shows while it installs."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.makefile import clone, make, program
from tools.installing import steps

TOOL = Path(__file__).parent.parent / "tools" / "installing.py"
SAID = ["Obtaining file:///x\n", "Collecting typer>=0.1 (from culture)\n", "  Downloading t.whl\n"]


def test_it_is_told_what_is_fetched_and_how_much_is_installed() -> None:
    lines = [*SAID, "Collecting pydantic-core==2\n", "Installing collected packages: a, b, c\n"]
    assert list(steps(lines)) == ["fetching typer (1)", "fetching pydantic-core (2)", "installing 3 packages"]


def test_what_went_wrong_is_shown_and_passed_on() -> None:
    failing = [sys.executable, "-c", "import sys; print('Collecting x'); sys.exit('no such package')"]
    done = subprocess.run([sys.executable, str(TOOL), *failing], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "no such package" in done.stderr and not done.stdout


def test_ctrl_c_ends_it_with_a_word_on_how_to_go_on(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    pip = f"""
import os, pathlib, signal
pathlib.Path({str(file)!r}).write_text(str(os.getpid()))
print("Installing collected packages: a", flush=True)
signal.pause()
"""
    command = [sys.executable, str(TOOL), sys.executable, "-c", pip]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as tool:
        assert tool.stdout is not None and tool.stdout.readline() == "  installing 1 packages\n"
        tool.send_signal(signal.SIGINT)
        _, wrong = tool.communicate()
    assert tool.returncode == 130
    assert wrong == "The installation was broken off; type the same command again to go on.\n"
    with pytest.raises(ProcessLookupError):
        os.kill(int(file.read_text()), 0)


def only(folder: Path, *names: str) -> str:
    """A PATH with the programs that the recipes need, and no Python."""
    folder.mkdir(exist_ok=True)
    for name in ("sh", "rm", "rmdir", "mkdir", "test", "id", "sed", "touch", "nproc", "env", "cat", *names):
        (folder / name).symlink_to(str(shutil.which(name)))
    return str(folder)


OLD = """case "$*" in *version_info*print* | *print*version_info*) echo 3.9.18 ;; *) exit 1 ;; esac"""
NEW = """case "$*" in
*"-m venv"*) mkdir -p "$3/bin"; cp "$0" "$3/bin/python" ;;
*installing.py*) echo "$@" >> '{log}' ;;
esac"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A clone in a path with a space."""
    return clone(tmp_path / "my clone")


def test_a_python_that_is_too_old_is_refused_at_once_and_leaves_nothing(folder: Path, tmp_path: Path) -> None:
    path = only(tmp_path / "bin")
    program(tmp_path / "bin" / "python3", OLD)
    program(tmp_path / "bin" / "python3.13", "echo 'python3.13: command not found' >&2; exit 127")
    refused = make(folder, "up", PATH=path, UV="")
    assert refused.returncode == 2 and refused.stdout == ""
    assert "culture needs Python 3.11 or newer, and there is none; python3 is 3.9.18" in refused.stderr
    assert "python3.13 is not able to run" in refused.stderr and "make up PYTHON=" in refused.stderr
    assert not (folder / ".venv").exists()


@pytest.mark.parametrize("name", ["python3.13", "python3.12", "python3.11"])
def test_a_newer_python_is_found_behind_one_that_is_too_old(folder: Path, tmp_path: Path, name: str) -> None:
    path, log = only(tmp_path / "bin", "cp"), tmp_path / "log"
    program(tmp_path / "bin" / "python3", OLD)
    program(tmp_path / "bin" / name, NEW.format(log=log))
    made = make(folder, "env", PATH=path)
    assert made.returncode == 0, made.stderr
    assert log.read_text().startswith("tools/installing.py .venv/bin/python -m pip install ")
    assert (folder / ".venv" / ".made-dev").exists() and not (folder / ".venv" / ".unfinished").exists()


def test_what_a_failed_try_made_is_removed(folder: Path, tmp_path: Path) -> None:
    path = only(tmp_path / "bin", "cp")
    program(
        tmp_path / "bin" / "python3",
        'case "$*" in *"-m venv"*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python"; exit 1 ;; esac',
    )
    program(tmp_path / "bin" / "id", "echo 1000")
    failed = make(folder, "up", PATH=path)
    assert failed.returncode == 2 and "apt install python3-venv" in failed.stderr
    assert not (folder / ".venv").exists()


def test_ctrl_c_while_the_environment_is_made_leaves_nothing(folder: Path, tmp_path: Path) -> None:
    path = only(tmp_path / "bin", "cp", "kill")
    # The terminal sends the signal to all of them; here the one that makes the environment sends it to its caller.
    interrupt = (
        'case "$*" in *"-m venv"*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python"; kill -INT $PPID; exit 130 ;; esac'
    )
    program(tmp_path / "bin" / "python3", interrupt)
    done = subprocess.run(
        ["sh", "tools/environment", ".venv"],
        cwd=folder,
        env={"PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 130
    assert "interrupted; nothing of it is left. Type the same command again." in done.stderr
    assert not (folder / ".venv").exists()


@pytest.mark.parametrize("broken", ["no pip", "too old", "unfinished", "gone"])
def test_an_environment_that_an_earlier_try_left_broken_is_made_again(
    folder: Path, tmp_path: Path, broken: str
) -> None:
    path, log = only(tmp_path / "bin", "cp"), tmp_path / "log"
    new = program(tmp_path / "bin" / "python3", NEW.format(log=log))
    python = folder / ".venv" / "bin" / "python"
    program(python, {"no pip": 'case "$*" in *"import pip"*) exit 1 ;; esac', "too old": OLD}.get(broken, "exit 0"))
    (folder / ".venv" / "agents").mkdir()
    if broken == "unfinished":
        (folder / ".venv" / ".unfinished").touch()
    elif broken == "gone":
        python.unlink()
        python.symlink_to(tmp_path / "python that is gone")
        (folder / ".venv" / ".made-dev").touch()
        (folder / ".venv" / ".made-run").touch()
    made = make(folder, "env", PATH=path)
    assert made.returncode == 0, made.stderr
    assert python.read_text() == new.read_text() and log.exists()
    assert (folder / ".venv" / "agents").is_dir(), "what is no part of an environment stays"


def test_the_package_of_the_former_name_is_removed_before_ours_is_installed(folder: Path, tmp_path: Path) -> None:
    """Ours was called so, too; and the one of the package index is another program."""
    path, log = only(tmp_path / "bin", "cp"), tmp_path / "log"
    program(folder / ".venv" / "bin" / "python", f"""case "$*" in *pip*install*) echo "$@" >> '{log}' ;; esac""")
    site = folder / ".venv" / "lib" / "python3.11" / "site-packages"
    (site / "culture-0.1.0.dist-info").mkdir(parents=True)
    assert make(folder, "env", PATH=path).returncode == 0
    first, second = log.read_text().splitlines()
    assert first.startswith("-m pip uninstall ") and first.endswith(" culture")
    assert second.endswith("-c constraints.txt -e .[dev]")
    (site / "culture-0.1.0.dist-info").rename(site / "culture_mesh-0.1.0.dist-info")
    (folder / "pyproject.toml").touch()
    log.unlink()
    assert make(folder, "--always-make", "env", PATH=path).returncode == 0
    assert "uninstall" not in log.read_text()
