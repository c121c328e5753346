"""What Copilot gives in one turn, in the words of the contract."""

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
# How it says that nobody has logged in at GitHub; what it advises is for a terminal that is not there.
NO_LOGIN = "No GitHub OAuth token"


def normalised(said: AssistantMessageData) -> list[dict[str, Any]]:
    """The blocks as the contract has them."""
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
    """The result of a tool, as the contract has it."""
    output = done.error.message if done.error is not None else done.result.content if done.result is not None else ""
    code = done.shell_execution.exit_code if done.shell_execution is not None else 0
    return tool_result(done.tool_call_id, output, failed=not done.success or bool(code))


def tokens(usage: AssistantUsageData | CompactionCompleteCompactionTokensUsed | None) -> int:
    """What was read and written; what came from a cache is among what was read."""
    return ((usage.input_tokens or 0) + (usage.output_tokens or 0)) if usage is not None else 0


def not_logged_in() -> str:
    """That nobody has logged in, and what to do."""
    return f"Copilot is not logged in: {TO_LOG_IN} (docs/clients/copilot/overview.md)"


@dataclass(slots=True)
class CopilotAnswer:
    """What a turn gave so far."""

    text: str = ""
    tools: list[str] = field(default_factory=list)
    error: str = ""
    trouble: str = ""
    """The kind of the error, in the program's own word."""
    interrupted: bool = False
    compacted: bool = False

    def take(self, said: AssistantMessageData) -> None:
        """Take note of what it said and called."""
        self.text = said.content or self.text
        self.tools.extend(call.name for call in said.tool_requests or ())

    def fail(self, error: SessionErrorData) -> None:
        """Take note of why it is no answer."""
        self.error, self.trouble = error.message, error.error_type

    def turn(self, spent: int, fullness: float | None, *, own_provider: bool) -> Turn:
        """All of it."""
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
