"""Execute the steps of a playbook in one turn, which can be interrupted at any moment."""

import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

from culture.clients.scripted.steps import (
    AskStep,
    CrashStep,
    ErrorStep,
    HangStep,
    LoopStep,
    ReadStep,
    RunStep,
    SayStep,
    SendStep,
    Step,
    ThinkStep,
    UsageStep,
    WaitStep,
    fill,
    shell_command,
)

MOST_OUTPUT = 64 * 1024
TOOK_TOO_LONG = 124
_GRACE = 1.0
# -P: do not import modules from the folder that the agent works in.
SKILL_CLIENT = (sys.executable, "-P", "-m", "culture.clients.shared.skill.irc_client")
SKILL_TIMEOUT = 60.0
_ASKED_BACK = re.compile(r"asks back about (q\d+);")
_LOOK_AGAIN = 0.02


class BrokenOff(Exception):
    """The running turn was interrupted."""


class Breaking:
    """Passes interrupts from the thread that reads input to the thread that executes a turn."""

    def __init__(self) -> None:
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._present = 0
        self._upto = 0

    def begin(self, turn: int) -> None:
        """Start the turn with this number; an interrupt of it that has come before counts."""
        self._present = turn
        self._silence()

    def break_off(self, turn: int) -> None:
        """Interrupt the turn with this number and all turns before it."""
        self._upto = max(self._upto, turn)
        os.eventfd_write(self._bell, 1)

    def check(self) -> None:
        """Raise ``BrokenOff`` if the running turn was interrupted."""
        if self._present <= self._upto:
            raise BrokenOff

    def wait(self, seconds: float, descriptor: int | None = None) -> bool:
        """Wait until the file descriptor is readable or the time is over; return whether it is.

        Raises ``BrokenOff`` if the turn is interrupted.
        """
        deadline = time.monotonic() + seconds
        poll = select.poll()
        for each in (self._bell, descriptor):
            if each is not None:
                poll.register(each, select.POLLIN)
        while (left := deadline - time.monotonic()) > 0:
            self.check()
            if any(ready == descriptor for ready, _ in poll.poll(left * 1000)):
                return True
            # The event may belong to an earlier turn.
            self._silence()
        self.check()
        return False

    def _silence(self) -> None:
        try:
            os.eventfd_read(self._bell)
        except BlockingIOError:
            pass


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
        child.wait(_GRACE)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _written(output: IO[bytes]) -> str:
    output.seek(0)
    text = output.read(MOST_OUTPUT + 1)
    cut = "\n…" if len(text) > MOST_OUTPUT else ""
    return text[:MOST_OUTPUT].decode(errors="replace").rstrip("\n") + cut


class ApiError(Exception):
    """An ``error`` step was reached: the turn ends as if a model's API had failed.

    ``full``: as if the context were full.
    """

    def __init__(self, text: str, full: bool = False) -> None:
        super().__init__(text)
        self.full = full


@dataclass
class Performance:
    """Executes the steps of one turn; ``tell`` is called with texts, thoughts and tool calls."""

    tell: Callable[[dict[str, object]], None]
    breaking: Breaking
    values: dict[str, str]
    text: str = ""
    """The last text."""
    tools: list[str] = field(default_factory=list)
    usage: UsageStep = field(default_factory=UsageStep)

    def perform(self, steps: Sequence[Step]) -> None:
        """Execute the steps in order; ``BrokenOff`` and ``ApiError`` end the turn."""
        for step in steps:
            self.breaking.check()
            self._step(step)

    def _step(self, step: Step) -> None:
        match step:
            case SayStep(text):
                self._say(self._fill(text))
            case ThinkStep(text):
                self.tell({"type": "thinking", "text": self._fill(text)})
            case SendStep(to, text):
                given = {"channel": self._fill(to), "message": self._fill(text)}
                self._skill("irc_send", given, ["send", "--", given["channel"], "-"], given["message"])
            case AskStep(to, question, timeout, options):
                self._ask({"channel": self._fill(to), "question": self._fill(question)}, timeout, options)
            case ReadStep(channel):
                given = {"channel": self._fill(channel)}
                self._skill("irc_read", given, ["read", "--", given["channel"]])
            case RunStep(command, timeout):
                self._run(command, timeout)
            case WaitStep(seconds, None):
                self.breaking.wait(seconds)
            case WaitStep(seconds, str(path)):
                self._wait_for(Path(self._fill(path)), seconds)
            case UsageStep():
                self._use(step)
            case ErrorStep(text, full):
                raise ApiError(self._fill(text), full)
            case CrashStep(code):
                _crash(code)
            case HangStep(stubborn):
                _hang(stubborn)
            case LoopStep(times, steps):
                self._repeat(times, steps)

    def _fill(self, text: str) -> str:
        return fill(text, self.values)

    def _say(self, text: str) -> None:
        self.text = text
        self.tell({"type": "text", "text": text})

    def _ask(self, given: dict[str, str], timeout: float, options: str) -> None:
        """Ask a question in a channel and wait up to ``timeout`` seconds for the answer.

        ``given``: the channel and the question; ``options``: the possible answers, "" for any. After an answer that
        is not among the options, the list of options is sent and the wait continues.
        """
        chosen = ["--options", options] if options else []
        words = ["ask", "--timeout", f"{timeout:g}", *chosen, "--", given["channel"], "-"]
        errors = self._skill("irc_ask", given, words, given["question"], timeout)
        while options and (back := _ASKED_BACK.search(errors)):
            again = ["ask", "--again", back[1], "--reply", f"I wait for one of these: {options}."]
            errors = self._skill("irc_ask", given, again, wait=timeout)

    def _skill(self, tool: str, given: dict[str, str], words: Sequence[str], text: str = "", wait: float = 0.0) -> str:
        """Run ``irc_client`` with these words as a tool call; returns its standard error.

        ``tool``, ``given``: name and input of the tool call; ``text``: standard input; ``wait``: seconds more than
        usual.
        """
        command = ScriptedCommand([*SKILL_CLIENT, *words], timeout=SKILL_TIMEOUT + wait, text=text)
        return self._call(tool, given, command)

    def _run(self, command: str, timeout: float) -> None:
        text, variables = shell_command(command, self.values)
        shell = ScriptedCommand(["/bin/sh", "-c", text], variables, timeout, merged=True)
        self._call("run", {"command": self._fill(command)}, shell)

    def _call(self, tool: str, given: dict[str, str], command: ScriptedCommand) -> str:
        self.tools.append(tool)
        name = f"call-{self.values['count']}-{len(self.tools)}"
        self.tell({"type": "tool_use", "id": name, "name": tool, "input": given})
        result = run(command, self.breaking)
        # A failed program reports on stderr; otherwise stderr may hold a whisper, which is no output.
        output = result.output or (result.errors if result.code else "")
        self.values.update(output=output, code=str(result.code))
        outcome = {"output": output, "errors": result.errors, "code": result.code}
        self.tell({"type": "tool_result", "id": name, **outcome})
        return result.errors

    def _wait_for(self, path: Path, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not path.exists():
            if time.monotonic() >= deadline:
                raise ApiError(f"waited {seconds:g} seconds for {path}")
            self.breaking.wait(_LOOK_AGAIN)

    def _use(self, usage: UsageStep) -> None:
        known = {name: getattr(usage, name) for name in ("tokens", "cost_usd", "context_pct")}
        self.usage = replace(self.usage, **{name: value for name, value in known.items() if value is not None})
        self.tell({"type": "usage", "tokens": self.usage.tokens or 0, "cost_usd": self.usage.cost_usd or 0.0})

    def _repeat(self, times: int, steps: Sequence[Step]) -> None:
        for number in range(1, times + 1):
            self.values["round"] = str(number)
            self.perform(steps)


def _crash(code: int) -> None:
    if code < 0:
        os.kill(os.getpid(), -code)
    os._exit(abs(code))


def _hang(stubborn: bool) -> None:
    if stubborn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        signal.pause()
