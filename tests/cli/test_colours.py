"""Colours are for terminals, and for nobody who has turned them off."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ESCAPE = b"\x1b["


def shown(folder: Path, terminal: bool, **variables: str) -> bytes:
    """What ``culture doctor`` prints, to a terminal or into a pipe."""
    environment = {"PATH": os.defpath, "HOME": str(folder), "PYTHONPATH": str(ROOT), "TERM": "xterm", **variables}
    command = [sys.executable, "-m", "culture", "doctor"]
    if not terminal:
        return subprocess.run(command, env=environment, cwd=folder, capture_output=True).stdout
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command, env=environment, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    said = b""
    while True:
        try:
            more = os.read(ours, 4096)
        except OSError:  # the other side is closed
            break
        if not more:
            break
        said += more
    os.close(ours)
    process.wait()
    return said


@pytest.mark.parametrize(
    ("terminal", "variables", "coloured"),
    [(True, {}, True), (True, {"NO_COLOR": "1"}, False), (False, {}, False)],
    ids=["terminal", "NO_COLOR", "pipe"],
)
def test_colours_are_for_terminals_alone(
    tmp_path: Path, terminal: bool, variables: dict[str, str], coloured: bool
) -> None:
    said = shown(tmp_path, terminal, **variables)
    assert b"culture" in said
    assert (ESCAPE in said.replace(b"\x1b[K", b"")) is coloured
