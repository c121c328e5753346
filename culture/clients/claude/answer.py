"""Collect Claude's messages into blocks, texts and usage of a turn."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from claude_agent_sdk import (
    AssistantMessage,
    ResultMessage,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)
from claude_agent_sdk.types import ContentBlock, ServerToolUseBlock

from culture.clients.claude.detect import to_log_in
from culture.clients.claude.usage import price
from culture.clients.shared.tool_result import tool_result

# Model name of messages that come from the program, not from a model.
SYNTHETIC = "<synthetic>"
# In the program's request to continue an answer that was cut off: the next text continues the last one.
GO_ON = "Resume directly"
# The program's error without a login; its advice is for a terminal, so ours replaces it.
NO_LOGIN = "Not logged in"
# The origin that we set on our prompts, and that their results repeat.
OWN = {"kind": "human"}
FULL = ("prompt_too_long", "blocking_limit", "rapid_refill_breaker")
READ = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
WRITTEN = "output_tokens"


def normalised(blocks: Sequence[ContentBlock]) -> list[dict[str, Any]]:
    """Return a message's content blocks in the format that all runners emit."""
    return [known for block in blocks if (known := _normalised(block)) is not None]


def _normalised(block: ContentBlock) -> dict[str, Any] | None:
    match block:
        case TextBlock(text=text) if text:
            return {"type": "text", "text": text}
        case ThinkingBlock(thinking=thinking) if thinking:
            return {"type": "thinking", "thinking": thinking}
        case ToolUseBlock(id=id, name=name, input=input) | ServerToolUseBlock(id=id, name=name, input=input):
            return {"type": "tool_use", "id": id, "name": name, "input": input}
    return None


def tool_results(message: UserMessage) -> list[dict[str, Any]]:
    """Return the tool results in a message to the model, in the format that all runners emit."""
    blocks = message.content if isinstance(message.content, list) else []
    return [
        tool_result(block.tool_use_id, block.content, failed=bool(block.is_error))
        for block in blocks
        if isinstance(block, ToolResultBlock)
    ]


def is_error(message: AssistantMessage) -> bool:
    """Return whether a message is an error instead of an answer, such as ``API Error: 529 …``."""
    return message.error is not None or message.model == SYNTHETIC


def tokens(usage: Mapping[str, Any] | None) -> int:
    """Return the sum of input, cached and output tokens in a usage report; 0 for None."""
    figures = [(usage or {}).get(name) for name in (*READ, WRITTEN)]
    return sum(figure for figure in figures if isinstance(figure, int))


@dataclass(slots=True)
class ClaudeAnswer:
    """Texts, tool calls and usage of a turn so far."""

    text: str = ""
    tools: list[str] = field(default_factory=list)
    compacted: bool = False
    not_compacted: str = ""
    """Why the context could not be compacted."""
    context: int | None = None
    """Tokens of the last model call, which is the size of the context."""
    model: str = ""
    limited_until: float | None = None
    """Time until which the rate limit holds."""
    calls: dict[str, int] = field(default_factory=dict)
    """Tokens by model call, including those of sub-agents."""
    sent_off: set[str] = field(default_factory=set)
    """Model calls of sub-agents, which the result of the turn does not count."""
    prices: dict[str, float] = field(default_factory=dict)
    """Dollars by model call, by the price list."""
    cut_off: bool = False
    """Whether the next text continues the last one."""

    def count(self, message: AssistantMessage) -> int:
        """Add a message's token usage and return the turn's tokens so far.

        A model call that is reported again is counted once.
        """
        if used := tokens(message.usage):
            call = message.message_id or str(len(self.calls))
            listed = price(message.model, message.usage, message.content)
            self.calls[call], self.prices[call] = used, max(listed, self.prices.get(call, 0.0))
            if message.parent_tool_use_id is not None:
                self.sent_off.add(call)
        return sum(self.calls.values())

    @property
    def of_agents(self) -> int:
        """Return the tokens that sub-agents used in this turn, as far as Claude Code reports them."""
        return sum(self.calls[call] for call in self.sent_off)

    @property
    def listed(self) -> float:
        """Return the dollars of the turn so far, estimated by the price list."""
        return sum(self.prices.values())

    def take(self, message: AssistantMessage, content: Sequence[dict[str, Any]]) -> None:
        """Record the text, the tool calls and the context size of a message.

        ``content``: its normalised blocks.
        """
        self.context, self.model = tokens(message.usage) or self.context, message.model
        for block in content:
            if block["type"] == "text":
                self.text = self.text + block["text"] if self.cut_off else block["text"]
                self.cut_off = False
            elif block["type"] == "tool_use":
                self.tools.append(block["name"])

    def told(self, message: UserMessage) -> None:
        """Record whether a message to the model asks to continue an answer that was cut off."""
        content = message.content
        texts = (
            [content] if isinstance(content, str) else [each.text for each in content if isinstance(each, TextBlock)]
        )
        self.cut_off = self.cut_off or any(GO_ON in text for text in texts)

    def fullness(self, result: ResultMessage) -> float | None:
        """Return how much of the context window the last model call used, in %; None if unknown."""
        used = (result.model_usage or {}).get(self.model)
        window = used.get("contextWindow") if used else None
        return 100 * self.context / window if self.context and window else None


def was_interrupted(result: ResultMessage) -> bool:
    """Return whether the turn that ended with this result was interrupted."""
    return (result.terminal_reason or "").startswith("aborted")


def is_full(result: ResultMessage) -> bool:
    """Return whether the turn that ended with this result failed because the context is full."""
    return result.terminal_reason in FULL or result.api_error_status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE


def is_own(result: ResultMessage) -> bool:
    """Return whether a result belongs to a prompt that culture sent, according to its origin."""
    return result.origin is not None and result.origin["kind"] == OWN["kind"]


def failure(result: ResultMessage) -> str:
    """Return the error text of a turn that failed with this result; "" if it succeeded."""
    if was_interrupted(result):
        return "interrupted"
    if not result.is_error:
        return ""
    said = "; ".join(result.errors or ()) or result.result or result.subtype
    return no_login() if said.startswith(NO_LOGIN) else said


def no_login() -> str:
    """Return the error text for a missing login; it says how to log in."""
    return f"Claude Code is not logged in: {to_log_in()} (docs/clients/claude/overview.md)"


class Costs:
    """Computes the cost of each turn from the running total of the session."""

    def __init__(self, total: float | None = 0.0) -> None:
        self._total = total
        """None: unknown so far; the next figure is the start of counting."""

    def spent(self, total: float | None) -> float:
        """Return the dollars since the last call; ``total``: the session's dollars in all.

        The result is 0 if the total is unknown.
        """
        if total is None:
            return 0.0
        known, self._total = self._total, total
        return 0.0 if known is None else max(total - known, 0.0)
