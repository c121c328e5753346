"""What `make` shows while it installs."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

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
