"""Collect Codex's items into blocks, texts and usage of a turn."""

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

# Name of the shell in permissions such as `always Bash(…)`, the same for all backends.
SHELL = "Bash"
SHELLS = re.compile(r"(/usr(/local)?)?/bin/(ba|da|z)?sh")
EDIT = "Edit"
FULL = "contextWindowExceeded"
# The same error, as some providers report it.
TOO_LONG = "context_length_exceeded"
LIMITED = "usageLimitExceeded"
UNAUTHORISED = 401
# States of a failed tool call.
FAILED = ("failed", "declined")
# Source of a call that only polls a running command.
POLLS = "unifiedExecInteraction"
# Fields of an item that are not input of its tool.
_OWN = frozenset({"type", "id", "status", "tool", "server", "durationMs", "result", "error"})


def command_of(line: str) -> str:
    """Return the command that Codex runs, without the shell around it.

    The whole line is returned if it has another form: a model may name any program as the shell, and that must not
    run under a permission for the command.
    """
    try:
        words = shlex.split(line)
    except ValueError:
        return line
    return words[2] if len(words) == 3 and SHELLS.fullmatch(words[0]) and words[1] in ("-c", "-lc") else line


def called(item: Item) -> dict[str, Any] | None:
    """Return the ``tool_use`` block of an item, or None if the item is no tool call."""
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
    """Return the ``tool_result`` block of an ended item, or None if the item is no tool call."""
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


def text_block(item: Item) -> dict[str, Any] | None:
    """Return the ``text`` or ``thinking`` block of an item, or None if it is neither."""
    match item:
        case {"type": "agentMessage", "text": str(text)} if text:
            return {"type": "text", "text": text}
        case {"type": "reasoning"} if thought := "\n\n".join(item.get("summary") or item.get("content") or ()):
            return {"type": "thinking", "thinking": thought}
    return None


@dataclass(slots=True)
class CodexAnswer:
    """Text, tool calls and items of a turn so far."""

    text: str = ""
    tools: list[str] = field(default_factory=list)
    compacted: bool = False
    items: dict[str, Item] = field(default_factory=dict)
    """Started items by id, including those of sub-agents."""
    asked: bool = True
    """Whether the turn has a prompt of ours; Codex begins some by itself."""
    tokens: int = 0
    """Tokens used by the end of the turn."""

    def begin(self, item: Item, *, own: bool) -> dict[str, Any] | None:
        """Record an item that begins; return its ``tool_use`` block, or None if it is no tool call.

        ``own``: the item is of the agent's own thread, not of a sub-agent's.
        """
        self.items[str(item.get("id"))] = item
        call = called(item)
        if call is not None and own:
            self.tools.append(call["name"])
        return call

    def end(self, item: Item) -> dict[str, Any] | None:
        """Record an item that has ended; return its text block, or None if it has no text."""
        block = text_block(item)
        if block is not None and block["type"] == "text":
            self.text = block["text"]
        if item.get("type") == "contextCompaction":
            self.compacted = True
        return block


class CodexUsage:
    """Computes the tokens of the current turn and the size of the context from running totals."""

    def __init__(self) -> None:
        self.fullness: float | None = None
        self._totals: dict[str, int] = {}
        self._before: dict[str, int] = {}

    def begin(self) -> None:
        """Start counting the tokens of a new turn."""
        self._before = dict(self._totals)

    def take(self, thread: str, usage: dict[str, Any], *, earlier: bool = False) -> None:
        """Record a thread's usage totals in tokens.

        ``earlier``: all of them were used before this turn.
        """
        last, total = usage["last"]["totalTokens"], usage["total"]["totalTokens"]
        self._totals[thread] = total
        if earlier:
            self._before[thread] = total
        self._before.setdefault(thread, total - last)

    def measure(self, usage: dict[str, Any]) -> None:
        """Compute how full the context is, in %, from the last model call's usage."""
        if window := usage.get("modelContextWindow"):
            self.fullness = 100 * usage["last"]["totalTokens"] / window

    @property
    def used(self) -> int:
        """Return the tokens of the turn so far."""
        return sum(max(total - self._before.get(thread, total), 0) for thread, total in self._totals.items())


def failure(turn: dict[str, Any]) -> str:
    """Return the error text of a failed turn; "" if it succeeded."""
    if turn.get("status") == "interrupted":
        return "interrupted"
    if turn.get("status") != "failed":
        return ""
    error = turn.get("error") or {}
    said = _plain(str(error.get("message") or "the turn failed"))
    return f"{said} ({to_log_in()})" if _status(error) == UNAUTHORISED or reason(turn) == "unauthorized" else said


def is_full(turn: dict[str, Any]) -> bool:
    """Return whether the turn failed because the context is full."""
    return reason(turn) == FULL or TOO_LONG in str((turn.get("error") or {}).get("message"))


def _plain(text: str) -> str:
    """Return the message in an error text that is JSON from the model provider, else the text."""
    try:
        return str(json.loads(text)["error"]["message"])
    except (ValueError, TypeError, LookupError):
        return text


def reason(turn: dict[str, Any]) -> str:
    """Return Codex's error code of a turn; "" without an error."""
    info = (turn.get("error") or {}).get("codexErrorInfo")
    return next(iter(info), "") if isinstance(info, dict) else str(info or "")


def _status(error: dict[str, Any]) -> int | None:
    info = error.get("codexErrorInfo")
    details = next(iter(info.values()), None) if isinstance(info, dict) else None
    return details.get("httpStatusCode") if isinstance(details, dict) else None


def quotas(limits: dict[str, Any]) -> list[Quota]:
    """Return the rate limit windows of a subscription as quotas.

    Windows without a time at which they reset are left out.
    """
    windows = [each for each in (limits.get("primary"), limits.get("secondary")) if each]
    return [
        Quota(_span(each.get("windowDurationMins")), each["usedPercent"] / 100, float(each["resetsAt"]))
        for each in windows
        if each.get("resetsAt")
    ]


def freed(windows: Sequence[Quota]) -> float | None:
    """Return when the used-up quotas reset, in seconds since 1970; None if none is used up."""
    return max((each.resets for each in windows if each.used >= 1), default=None)


def _span(minutes: int | None) -> str:
    """Return the name of a quota's time window by its length, such as ``5_hour``."""
    hours = (minutes or 0) / 60
    return f"{hours / 24:.0f}_day" if hours >= 24 else f"{hours:.0f}_hour"
