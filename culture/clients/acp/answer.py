"""Collect an ACP agent's updates into blocks, texts and usage of a turn."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from acp import RequestError
from acp.schema import (
    AgentMessageChunk,
    AgentThoughtChunk,
    FileEditToolCallContent,
    PromptResponse,
    TextContentBlock,
    ToolCallProgress,
    ToolCallStart,
    ToolCallUpdate,
    UsageUpdate,
)

from culture.clients.shared.questions.file_changes import unified
from culture.clients.shared.tool_result import tool_result

Block = dict[str, Any]
# Tool names for permanent permissions, the same for all programs.
EDIT = "Edit"
NAMES = {"execute": "Bash", "fetch": "WebFetch", "switch_mode": "Mode"}
# Errors that mean: the context is full.
FULL = re.compile(r"context[ _-]?(length|window|limit|size)|maximum context|prompt is too long|input is too long", re.I)
# Errors that mean: the agent behind the program has died, and no turn will be answered.
LOST = re.compile(r"process (has )?exited|exited unexpectedly|session not found|unknown session", re.I)
ODD_STOPS = {
    "refusal": "the model refused to go on",
    "max_tokens": "the answer was cut off by its length",
    "max_turn_requests": "the agent used up its requests for one turn",
}


@dataclass(slots=True)
class _Call:
    """A tool call of the agent; its input may arrive in later updates."""

    name: str = ""
    title: str = ""
    given: Mapping[str, object] = field(default_factory=dict)
    changes: tuple[FileEditToolCallContent, ...] = ()
    """Changes of files that come with the call."""
    told: bool = False
    ended: bool = False

    @property
    def shown(self) -> Mapping[str, object]:
        """Return what people see of the call: its input, or its title if there is no input."""
        return self.given or {"title": self.title}

    def tell(self, id: str) -> Block:
        """Mark the tool call as reported, and return its ``tool_use`` block with this id."""
        self.told = True
        return {"type": "tool_use", "id": id, "name": self.name, "input": dict(self.shown)}


class AcpAnswer:
    """Collects the updates of one turn into blocks: texts, thoughts, tool calls and results.

    Pieces of text become a block once the text is complete.
    """

    def __init__(self, *, quiet: bool = False, notices: bool = False) -> None:
        self._quiet = quiet
        self._notices = notices
        self.notice = ""
        """Last text of the program itself, not of the model."""
        self.text = ""
        """The last complete text."""
        self.counted = 0
        """Tokens counted from the metadata of the updates."""
        self._calls: dict[str, _Call] = {}
        self._kind = ""
        self._message: str | None = None
        self._pieces: list[str] = []

    @property
    def tools(self) -> tuple[str, ...]:
        """Return the names of the tools that the agent called."""
        return tuple(call.name for call in self._calls.values())

    def take(self, update: object) -> list[Block]:
        """Process an update of the ACP agent; return the blocks that are complete now.

        A block is a piece of output, as a dictionary: text, thought, tool call or tool result.
        """
        match update:
            case AgentMessageChunk(content=TextContentBlock(text=text)) if self._notices and not update.message_id:
                self.notice = text.strip()
            case AgentMessageChunk(content=TextContentBlock(text=text)):
                self._count(update.field_meta)
                return self._add("text", update.message_id, text)
            case AgentThoughtChunk(content=TextContentBlock(text=text)):
                return self._add("thinking", update.message_id, text)
            case ToolCallStart() | ToolCallProgress():
                return [*self.flush(), *self.called(update, sure=_is_sure(update)), *self._ended(update)]
        return []

    def called(self, call: ToolCallStart | ToolCallUpdate, *, sure: bool) -> list[Block]:
        """Record a tool call, and return its ``tool_use`` block, once per call.

        Returns no block while the input of the call may be incomplete (not ``sure``).
        """
        known = self._calls.setdefault(call.tool_call_id, _Call())
        known.title = call.title or known.title
        known.name = tool_name(call) or known.name or "tool"
        known.given = given(call) or known.given
        changes = tuple(each for each in call.content or () if isinstance(each, FileEditToolCallContent))
        known.changes = changes or known.changes
        if known.told or not sure:
            return []
        return [known.tell(call.tool_call_id)]

    def _ended(self, call: ToolCallStart | ToolCallProgress) -> list[Block]:
        """Return the ``tool_result`` block of a tool call that has ended, once per call."""
        known = self._calls[call.tool_call_id]
        if call.status not in ("completed", "failed") or known.ended:
            return []
        known.ended = True
        return [tool_result(call.tool_call_id, output(call), failed=call.status == "failed" or exit_code(call) != 0)]

    def use(self, call: ToolCallUpdate) -> tuple[str, Mapping[str, object]]:
        """Return the tool name and input of a call, as a permission question shows them to people."""
        known = self._calls[call.tool_call_id]
        return changed_files(known.changes) or (known.name, known.shown)

    def flush(self) -> list[Block]:
        """Complete the text that is being collected, and return it as a block; empty without text."""
        said, kind = "".join(self._pieces), self._kind
        self._pieces.clear()
        self._kind, self._message = "", None
        if not said or self._quiet:
            return []
        if kind == "text":
            self.text = said
        return [{"type": kind, kind: said}]

    def drop(self, error: str) -> None:
        """Discard the collected text if it only repeats the error text ``error``."""
        if self._kind == "text" and "".join(self._pieces).strip() in error:
            self._pieces.clear()

    def finish(self) -> list[Block]:
        """Return the blocks that are still incomplete at the end of the turn."""
        blocks = self.flush()
        return [*blocks, *(call.tell(name) for name, call in self._calls.items() if not call.told)]

    def _add(self, kind: str, message: str | None, text: str) -> list[Block]:
        done = self.flush() if self._pieces and (kind, message) != (self._kind, self._message) else []
        self._kind, self._message = kind, message
        if text:
            self._pieces.append(text)
        return done

    def _count(self, meta: Mapping[str, Any] | None) -> None:
        """Add the tokens in an update's metadata, where Qwen Code reports them per model call."""
        match (meta or {}).get("usage"):
            case {"totalTokens": int(total)}:
                self.counted += total


def _is_sure(call: ToolCallStart | ToolCallUpdate) -> bool:
    """Return whether the input of a tool call is complete.

    Updates may add input after the call was announced.
    """
    if call.status in ("in_progress", "completed", "failed"):
        return True
    return isinstance(call, ToolCallUpdate) and bool(call.raw_input)


def tool_name(call: ToolCallStart | ToolCallUpdate) -> str:
    """Return the name of a tool call's tool: its kind, else the first word of its title."""
    if call.kind and call.kind != "other":
        return NAMES.get(call.kind, call.kind.capitalize())
    found = re.search(r"[A-Za-z_][\w-]*", call.title or "")
    return found[0] if found else ""


def given(call: ToolCallStart | ToolCallUpdate) -> dict[str, object]:
    """Return the input of a tool call; Cline's list of commands as one command of several lines."""
    if not isinstance(call.raw_input, dict):
        return {}
    match call.raw_input:
        case {"commands": [*commands]}:
            return {"command": "\n".join(map(str, commands))}
    return call.raw_input


def changed_files(changes: Sequence[FileEditToolCallContent]) -> tuple[str, Mapping[str, object]] | None:
    """Return the tool name and the diffs of changed files, for a permission question.

    None if there are no changes.
    """
    diffs = [unified(each.old_text or "", each.new_text, each.path) for each in changes]
    if len(changes) == 1:
        return EDIT, {"file_path": changes[0].path, "diff": diffs[0]}
    found = [{"file": each.path, "diff": diff} for each, diff in zip(changes, diffs, strict=True)]
    return (EDIT, {"changes": found}) if found else None


def output(call: ToolCallStart | ToolCallUpdate) -> object:
    """Return the output of a tool call: its display content, else its raw output."""
    shown = [each.model_dump(mode="json", by_alias=True, exclude_none=True) for each in call.content or ()]
    return shown or call.raw_output


def exit_code(call: ToolCallStart | ToolCallUpdate) -> int:
    """Return the exit code of a tool call's command; 0 if the program reports none."""
    match call.raw_output:
        case {"exitCode": int(code)} | {"exit_code": int(code)} | {"metadata": {"exit": int(code)}}:
            return code
    return 0


@dataclass(slots=True)
class AcpUsage:
    """Computes the cost of each turn from the totals that the agent reports for the session."""

    cost: float | None = 0.0
    """Dollars so far; None for a resumed session until the agent reports them."""
    used: int = 0
    size: int = 0
    _spent: float = 0.0

    def read(self, update: UsageUpdate) -> None:
        """Record the session's context size in tokens and its cost in dollars from an update.

        A size of 0 means unknown.
        """
        if update.used:
            self.used, self.size = update.used, update.size
        if update.cost is not None and update.cost.currency == "USD":
            self._spent += max(update.cost.amount - self.cost, 0.0) if self.cost is not None else 0.0
            self.cost = update.cost.amount

    def spent(self) -> float:
        """Return the dollars that the session has cost since the last call of this method."""
        spent, self._spent = self._spent, 0.0
        return spent

    @property
    def running(self) -> float:
        """Return the dollars since the last call of ``spent``, without resetting that count."""
        return self._spent

    @property
    def context_pct(self) -> float | None:
        """Return how much of the context window is in use, in %; None if unknown."""
        return 100 * self.used / self.size if self.size else None


def tokens(response: PromptResponse | None, answer: AcpAnswer) -> int:
    """Return the tokens of a turn, from whichever field the agent reports them in.

    ``response``: the agent's response at the turn's end; ``answer``: what it sent before.
    """
    if response is None:
        return answer.counted
    if response.usage is not None:
        return response.usage.total_tokens
    match (response.field_meta or {}).get("quota"):
        case {"token_count": {"input_tokens": int(read), "output_tokens": int(written)}}:
            return read + written
    return answer.counted


def failure(error: RequestError) -> str:
    """Return the error text of a failed request, in the agent's words."""
    said = str(error).removeprefix("Internal error").lstrip(": ")
    match error.data:
        case {"details": str(more)} | {"message": str(more)} if more not in said:
            said = f"{said}: {more}" if said else more
    return said or "the agent failed without a word"


def odd_stop(response: PromptResponse, answer: AcpAnswer) -> str:
    """Return the error text of a turn that ended without an answer; "" if the turn has one."""
    if response.stop_reason == "refusal" or not answer.text:
        return ODD_STOPS.get(response.stop_reason, answer.notice)
    return ""
