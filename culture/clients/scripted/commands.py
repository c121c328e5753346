"""Running a program in a turn: to its end, to its time limit, or until the turn is broken off."""

import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO

from culture.clients.scripted.interruptible import Breaking, BrokenOff

MOST_OUTPUT = 64 * 1024
TOOK_TOO_LONG = 124
_LAST_WORDS = 1.0


@dataclass(frozen=True, slots=True)
class ScriptedCommand:
    """A program to run."""

    argv: Sequence[str]
    variables: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 60.0
    text: str = ""
    """What it reads."""
    merged: bool = False
    """What it writes on standard error is part of its output."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a program wrote and how it ended."""

    output: str
    errors: str
    code: int


def run(command: ScriptedCommand, breaking: Breaking) -> Result:
    """Run a program; its code is 124 when it took too long."""
    # Files and no pipes: what the program leaves behind in the background must not keep the turn waiting.
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        given.write(command.text.encode(errors="replace"))
        given.seek(0)
        child = subprocess.Popen(
            command.argv,
            stdin=given,
            stdout=output,
            stderr=subprocess.STDOUT if command.merged else errors,
            env={**os.environ, **command.variables},
            start_new_session=True,
        )
        code = _ended(child, command.timeout, breaking)
        return Result(_written(output), _written(errors), code)


def _ended(child: "subprocess.Popen[bytes]", timeout: float, breaking: Breaking) -> int:
    handle = os.pidfd_open(child.pid)
    try:
        if breaking.wait(timeout, handle):
            return child.wait()
        _end(child)
        return TOOK_TOO_LONG
    except BrokenOff:
        _end(child)
        raise
    finally:
        os.close(handle)


def _end(child: "subprocess.Popen[bytes]") -> None:
    """End the program and its group, kindly at first. It is not reaped before, so the number is still its own."""
    os.killpg(child.pid, signal.SIGTERM)
    try:
        child.wait(_LAST_WORDS)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _written(output: IO[bytes]) -> str:
    output.seek(0)
    text = output.read(MOST_OUTPUT + 1)
    cut = "\n…" if len(text) > MOST_OUTPUT else ""
    return text[:MOST_OUTPUT].decode(errors="replace").rstrip("\n") + cut
