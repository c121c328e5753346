"""Run a program in a turn: until its end, its timeout or an interrupt."""

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
    """A program to run in a turn, with its input ``text`` and time limit in seconds.

    ``merged``: standard error is part of the output.
    """

    argv: Sequence[str]
    variables: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 60.0
    text: str = ""
    """Its standard input."""
    merged: bool = False
    """Whether standard error is part of the output."""


@dataclass(frozen=True, slots=True)
class Result:
    """Output, standard error and exit code of a program that has ended."""

    output: str
    errors: str
    code: int


def run(command: ScriptedCommand, breaking: Breaking) -> Result:
    """Run a program and return its result; the exit code is 124 after a timeout.

    ``breaking`` tells that the turn is interrupted; then ``BrokenOff`` is raised.
    """
    # Files, not pipes: a background process of the program must not keep the turn waiting.
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
    """End a program's process group by SIGTERM, after some seconds by SIGKILL."""
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
