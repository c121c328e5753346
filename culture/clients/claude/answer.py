"""What Claude gives in one turn, in the words of the contract."""

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
from culture.clients.claude.prices import price
from culture.clients.shared.tool_result import tool_result

# The model's name on what the program itself says in its place.
SYNTHETIC = "<synthetic>"
# What the program tells the model when an answer was cut off by its length or by the API: the next text goes on.
GO_ON = "Resume directly"
# How the program says that nobody has logged in; its remedy is a word for a terminal that is not there.
NO_LOGIN = "Not logged in"
# The origin that our prompts are stamped with, and that their results tell.
OWN = {"kind": "human"}
FULL = ("prompt_too_long", "blocking_limit", "rapid_refill_breaker")
READ = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
WRITTEN = "output_tokens"


def normalised(blocks: Sequence[ContentBlock]) -> list[dict[str, Any]]:
    """The blocks as the contract has them."""
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
    """The results of tools in a message to the model, as the contract has them."""
    blocks = message.content if isinstance(message.content, list) else []
    return [
        tool_result(block.tool_use_id, block.content, failed=bool(block.is_error))
        for block in blocks
        if isinstance(block, ToolResultBlock)
    ]


def is_error(message: AssistantMessage) -> bool:
    """Whether it is no answer of the model but an error in its place: ``API Error: 529 …``."""
    return message.error is not None or message.model == SYNTHETIC


def tokens(usage: Mapping[str, Any] | None) -> int:
    """What was read and written."""
    figures = [(usage or {}).get(name) for name in (*READ, WRITTEN)]
    return sum(figure for figure in figures if isinstance(figure, int))


@dataclass(slots=True)
class ClaudeAnswer:
    """What a turn gave so far."""

    text: str = ""
    tools: list[str] = field(default_factory=list)
    compacted: bool = False
    not_compacted: str = ""
    """Why the context could not be shortened."""
    context: int | None = None
    """The tokens of the last call of the model: those of the whole turn count the context once for every call."""
    model: str = ""
    limited_until: float | None = None
    """Until when the provider gives nothing more."""
    calls: dict[str, int] = field(default_factory=dict)
    """The tokens of each call of the model, those of agents that it has sent off among them."""
    sent_off: set[str] = field(default_factory=set)
    """The calls of those agents, which the result of the turn does not count."""
    prices: dict[str, float] = field(default_factory=dict)
    """Its dollars by the price list."""
    cut_off: bool = False
    """The next text goes on where the last one stopped."""

    def count(self, message: AssistantMessage) -> int:
        """The tokens of the turn so far; a call that gives several messages tells the same figure with each."""
        if used := tokens(message.usage):
            call = message.message_id or str(len(self.calls))
            listed = price(message.model, message.usage, message.content)
            self.calls[call], self.prices[call] = used, max(listed, self.prices.get(call, 0.0))
            if message.parent_tool_use_id is not None:
                self.sent_off.add(call)
        return sum(self.calls.values())

    @property
    def of_agents(self) -> int:
        """The tokens of agents that it has sent off, as far as the program tells."""
        return sum(self.calls[call] for call in self.sent_off)

    @property
    def listed(self) -> float:
        """The dollars of the turn so far, by the price list."""
        return sum(self.prices.values())

    def take(self, message: AssistantMessage, content: Sequence[dict[str, Any]]) -> None:
        """Take note of what it said and called."""
        self.context, self.model = tokens(message.usage) or self.context, message.model
        for block in content:
            if block["type"] == "text":
                self.text = self.text + block["text"] if self.cut_off else block["text"]
                self.cut_off = False
            elif block["type"] == "tool_use":
                self.tools.append(block["name"])

    def told(self, message: UserMessage) -> None:
        """Take note of what the program told the model by itself."""
        content = message.content
        texts = (
            [content] if isinstance(content, str) else [each.text for each in content if isinstance(each, TextBlock)]
        )
        self.cut_off = self.cut_off or any(GO_ON in text for text in texts)

    def fullness(self, result: ResultMessage) -> float | None:
        """How full the context is in percent, as far as the turn itself tells."""
        used = (result.model_usage or {}).get(self.model)
        window = used.get("contextWindow") if used else None
        return 100 * self.context / window if self.context and window else None


def was_interrupted(result: ResultMessage) -> bool:
    """Whether the turn was broken off."""
    return (result.terminal_reason or "").startswith("aborted")


def is_full(result: ResultMessage) -> bool:
    """Whether not even a shortened context leaves room for an answer."""
    return result.terminal_reason in FULL or result.api_error_status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE


def is_own(result: ResultMessage) -> bool:
    """Whether it answers a prompt of ours, which are stamped; the result of a wake-up has no origin at all."""
    return result.origin is not None and result.origin["kind"] == OWN["kind"]


def failure(result: ResultMessage) -> str:
    """Why the turn is no answer; empty when it is one."""
    if was_interrupted(result):
        return "interrupted"
    if not result.is_error:
        return ""
    said = "; ".join(result.errors or ()) or result.result or result.subtype
    return no_login() if said.startswith(NO_LOGIN) else said


def no_login() -> str:
    """That nobody has logged in, and what to do."""
    return f"Claude Code is not logged in: {to_log_in()} (docs/clients/claude/overview.md)"


class Costs:
    """The running total of a session, as differences."""

    def __init__(self, total: float | None = 0.0) -> None:
        self._total = total
        """None: what was spent before is not known, so that the next figure is where counting begins."""

    def spent(self, total: float | None) -> float:
        """What was spent since the last time."""
        if total is None:
            return 0.0
        known, self._total = self._total, total
        return 0.0 if known is None else max(total - known, 0.0)
