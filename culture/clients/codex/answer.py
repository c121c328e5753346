"""What Codex gives in one turn, in the words of the contract."""

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from culture.clients.codex.detect import to_log_in
from culture.clients.shared.budget import Quota
from culture.clients.shared.tool_result import tool_result

Item = dict[str, Any]

# People say `always Bash(…)` whatever the backend calls its shell.
SHELL = "Bash"
SHELLS = re.compile(r"(/usr(/local)?)?/bin/(ba|da|z)?sh")
EDIT = "Edit"
FULL = "contextWindowExceeded"
# The same, from a provider that says it before it begins to answer.
TOO_LONG = "context_length_exceeded"
LIMITED = "usageLimitExceeded"
UNAUTHORISED = 401
# The states of an item whose tool did not do its work.
FAILED = ("failed", "declined")
# A look at a command that runs already.
POLLS = "unifiedExecInteraction"
# What an item has beside what its tool was given.
_OWN = frozenset({"type", "id", "status", "tool", "server", "durationMs", "result", "error"})


def command_of(line: str) -> str:
    """The command that the agent wrote, without the shell around it; the whole line when it is not that simple.

    A model may name its own shell: what it calls one must not run under the leave that is given for a command.
    """
    try:
        words = shlex.split(line)
    except ValueError:
        return line
    return words[2] if len(words) == 3 and SHELLS.fullmatch(words[0]) and words[1] in ("-c", "-lc") else line


def called(item: Item) -> dict[str, Any] | None:
    """The call of a tool as the contract has it; None when the item is none."""
    name: str
    given: dict[str, Any]
    match item:
        case {"type": "commandExecution", "source": source} if source == POLLS:
            return None
        case {"type": "commandExecution", "command": str(line)}:
            name, given = SHELL, {"command": command_of(line)}
        case {"type": "fileChange", "changes": list(changes)}:
            name, given = EDIT, {"changes": [{"path": each["path"], "diff": each["diff"]} for each in changes]}
        case {"type": "mcpToolCall", "server": str(server), "tool": str(tool), "arguments": arguments}:
            name, given = f"{server}.{tool}", arguments if isinstance(arguments, dict) else {"arguments": arguments}
        case {"type": "webSearch" | "dynamicToolCall" | "collabAgentToolCall" | "imageView" | "sleep" as kind}:
            name, given = str(item.get("tool") or kind), {key: item[key] for key in item.keys() - _OWN}
        case _:
            return None
    return {"type": "tool_use", "id": str(item["id"]), "name": name, "input": given}


def result(item: Item) -> dict[str, Any] | None:
    """The result of a tool that has ended, as the contract has it; None when the item is no call."""
    if called(item) is None:
        return None
    error = item.get("error")
    output = item.get("aggregatedOutput") or item.get("result") or item.get("contentItems")
    if isinstance(output, dict):
        output = output.get("content", output)
    if isinstance(error, dict):
        output = error.get("message", error)
    code = item.get("exitCode")
    if code:
        output = f"exit code {code}\n{output or ''}"
    failed = bool(error or code) or item.get("status") in FAILED or item.get("success") is False
    return tool_result(str(item["id"]), output, failed=failed)


def told(item: Item) -> dict[str, Any] | None:
    """What an item says or thinks, as the contract has it; None when it does neither."""
    match item:
        case {"type": "agentMessage", "text": str(text)} if text:
            return {"type": "text", "text": text}
        case {"type": "reasoning"} if thought := "\n\n".join(item.get("summary") or item.get("content") or ()):
            return {"type": "thinking", "thinking": thought}
    return None


@dataclass(slots=True)
class CodexAnswer:
    """What a turn gave so far."""

    text: str = ""
    tools: list[str] = field(default_factory=list)
    compacted: bool = False
    items: dict[str, Item] = field(default_factory=dict)
    """What was begun, by its id, by the agents that it has sent off among them."""
    asked: bool = True
    """Whether this was asked for, and not begun by Codex itself."""
    tokens: int = 0
    """Used by the end of the turn."""

    def begin(self, item: Item, *, own: bool) -> dict[str, Any] | None:
        """Take note of what begins, and give the call that it is."""
        self.items[str(item.get("id"))] = item
        call = called(item)
        if call is not None and own:
            self.tools.append(call["name"])
        return call

    def end(self, item: Item) -> dict[str, Any] | None:
        """Take note of what has ended, and give what it says."""
        said = told(item)
        if said is not None and said["type"] == "text":
            self.text = said["text"]
        if item.get("type") == "contextCompaction":
            self.compacted = True
        return said


class CodexUsage:
    """The tokens of the present turn and how full the context is, from running totals."""

    def __init__(self) -> None:
        self.fullness: float | None = None
        self._totals: dict[str, int] = {}
        self._before: dict[str, int] = {}

    def begin(self) -> None:
        """A turn begins."""
        self._before = dict(self._totals)

    def take(self, thread: str, usage: dict[str, Any], *, earlier: bool = False) -> None:
        """A call of the model is paid for, by the agent itself or by one that it has sent off; or was, earlier."""
        last, total = usage["last"]["totalTokens"], usage["total"]["totalTokens"]
        self._totals[thread] = total
        if earlier:
            self._before[thread] = total
        self._before.setdefault(thread, total - last)

    def measure(self, usage: dict[str, Any]) -> None:
        """What the last call read and wrote is the context now."""
        if window := usage.get("modelContextWindow"):
            self.fullness = 100 * usage["last"]["totalTokens"] / window

    @property
    def used(self) -> int:
        """The tokens of the turn so far."""
        return sum(max(total - self._before.get(thread, total), 0) for thread, total in self._totals.items())


def failure(turn: dict[str, Any]) -> str:
    """Why the turn is no answer; empty when it is one."""
    if turn.get("status") == "interrupted":
        return "interrupted"
    if turn.get("status") != "failed":
        return ""
    error = turn.get("error") or {}
    said = _plain(str(error.get("message") or "the turn failed"))
    return f"{said} ({to_log_in()})" if _status(error) == UNAUTHORISED or reason(turn) == "unauthorized" else said


def is_full(turn: dict[str, Any]) -> bool:
    """Whether not even a shortened context leaves room for an answer."""
    return reason(turn) == FULL or TOO_LONG in str((turn.get("error") or {}).get("message"))


def _plain(said: str) -> str:
    """What an error says, where it is passed on as the provider wrote it."""
    try:
        return str(json.loads(said)["error"]["message"])
    except (ValueError, TypeError, LookupError):
        return said


def reason(turn: dict[str, Any]) -> str:
    """Codex's own word for what went wrong; empty when nothing did."""
    info = (turn.get("error") or {}).get("codexErrorInfo")
    return next(iter(info), "") if isinstance(info, dict) else str(info or "")


def _status(error: dict[str, Any]) -> int | None:
    info = error.get("codexErrorInfo")
    details = next(iter(info.values()), None) if isinstance(info, dict) else None
    return details.get("httpStatusCode") if isinstance(details, dict) else None


def quotas(limits: dict[str, Any]) -> list[Quota]:
    """The windows of a subscription that are told of with a share and an end."""
    windows = [each for each in (limits.get("primary"), limits.get("secondary")) if each]
    return [
        Quota(_span(each.get("windowDurationMins")), each["usedPercent"] / 100, float(each["resetsAt"]))
        for each in windows
        if each.get("resetsAt")
    ]


def freed(windows: Sequence[Quota]) -> float | None:
    """When the provider gives something again; None when no window is used up."""
    return max((each.resets for each in windows if each.used >= 1), default=None)


def _span(minutes: int | None) -> str:
    """How long a window is, as people say it."""
    hours = (minutes or 0) / 60
    return f"{hours / 24:.0f}_day" if hours >= 24 else f"{hours:.0f}_hour"
