"""Collect Copilot's events into blocks, texts and usage of a turn."""

from dataclasses import dataclass, field
from typing import Any

from copilot.session_events import (
    AssistantMessageData,
    AssistantUsageData,
    CompactionCompleteCompactionTokensUsed,
    SessionErrorData,
    ToolExecutionCompleteData,
)

from culture.clients.copilot.detect import TO_LOG_IN
from culture.clients.shared.tool_result import tool_result
from culture.clients.shared.turn import Turn

INTERRUPTED = "interrupted"
AUTHENTICATION = "authentication"
FULL = "context_limit"
# The program's error without a GitHub login; its advice is for a terminal, so ours replaces it.
NO_LOGIN = "No GitHub OAuth token"


def normalised(said: AssistantMessageData) -> list[dict[str, Any]]:
    """Return a message's content blocks in the format that all runners emit."""
    blocks: list[dict[str, Any]] = []
    if said.reasoning_text:
        blocks.append({"type": "thinking", "thinking": said.reasoning_text})
    if said.content:
        blocks.append({"type": "text", "text": said.content})
    for call in said.tool_requests or ():
        given = call.arguments if isinstance(call.arguments, dict) else {"input": call.arguments}
        blocks.append({"type": "tool_use", "id": call.tool_call_id, "name": call.name, "input": given})
    return blocks


def result(done: ToolExecutionCompleteData) -> dict[str, Any]:
    """Return the ``tool_result`` block of an ended tool call."""
    output = done.error.message if done.error is not None else done.result.content if done.result is not None else ""
    code = done.shell_execution.exit_code if done.shell_execution is not None else 0
    return tool_result(done.tool_call_id, output, failed=not done.success or bool(code))


def tokens(usage: AssistantUsageData | CompactionCompleteCompactionTokensUsed | None) -> int:
    """Return the sum of input (including cached) and output tokens; 0 for None."""
    return ((usage.input_tokens or 0) + (usage.output_tokens or 0)) if usage is not None else 0


def not_logged_in() -> str:
    """Return the error text for a missing login; it says how to log in."""
    return f"Copilot is not logged in: {TO_LOG_IN} (docs/clients/copilot/overview.md)"


@dataclass(slots=True)
class CopilotAnswer:
    """Text, tool calls and error of a turn so far."""

    text: str = ""
    tools: list[str] = field(default_factory=list)
    error: str = ""
    trouble: str = ""
    """The program's error type."""
    interrupted: bool = False
    compacted: bool = False

    def take(self, said: AssistantMessageData) -> None:
        """Record the text and the tool calls of a message."""
        self.text = said.content or self.text
        self.tools.extend(call.name for call in said.tool_requests or ())

    def fail(self, error: SessionErrorData) -> None:
        """Record an error of the session as the reason why the turn failed."""
        self.error, self.trouble = error.message, error.error_type

    def turn(self, spent: int, fullness: float | None, *, own_provider: bool) -> Turn:
        """Return the turn's result in the format that all runners return.

        ``spent``: its tokens; ``fullness``: of the context, in %; ``own_provider``: the model is not GitHub's.
        """
        return Turn(
            text=self.text,
            error=INTERRUPTED if self.interrupted else self._why(own_provider),
            interrupted=self.interrupted,
            tools=tuple(self.tools),
            tokens=spent,
            context_pct=fullness,
            full=self.trouble == FULL,
            compacted=self.compacted,
        )

    def _why(self, own_provider: bool) -> str:
        if own_provider and self.trouble == AUTHENTICATION:
            return "the provider refuses the key: look at provider.api_key_env in agents.yaml"
        if self.trouble == AUTHENTICATION or NO_LOGIN in self.error:
            return not_logged_in()
        return self.error
