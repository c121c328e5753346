"""The Anthropic Messages API, with and without streaming."""

import json
from collections.abc import Awaitable, Callable, Iterator
from itertools import count
from typing import Any

from tests.support.model.http import Asked, Reply
from tests.support.model.journal import Journal, Request
from tests.support.model.pace import Pace
from tests.support.model.script import Answer, Call, Fail, Say, Think, Usage, answer, has_script
from tests.support.model.told import as_told

Block = dict[str, Any]
SHELLS = ("Bash", "bash", "shell")
ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}
# What programs add to a user's message of their own accord; it counts as a prompt only when it carries a script.
ASIDES = ("<system-reminder>", "[Request interrupted")
SUPERVISOR = "You are a supervisor monitoring"
SUMMARY = "<summary>What was said before.</summary>"
_ids = count(1)


async def messages(asked: Asked, reply: Reply, journal: Journal, pace: Pace) -> None:
    """``POST /v1/messages``."""
    body = asked.json()
    prompt, results = last_text(body)
    journal.write(Request(asked.path, body, prompt, results, dict(asked.headers)))
    if SUPERVISOR in json.dumps(body.get("system", "")):
        # What it is shown is full of other people's scripts.
        wanted = answer(journal.verdicts.pop(0) if journal.verdicts else "[[say OK]]", 0)
    else:
        wanted = _summary() if _asks_for_summary(prompt) else as_told(answer(prompt, len(results)), body, journal)
    writer = _Streamed(body, reply) if body.get("stream") else _Whole(body, reply)
    await _play(wanted, writer, pace)


async def count_tokens(asked: Asked, reply: Reply, _journal: Journal, _pace: Pace) -> None:
    """``POST /v1/messages/count_tokens``: four bytes are a token."""
    reply.json({"input_tokens": len(asked.content) // 4})


def too_long(reply: Reply) -> None:
    """What is answered when the context does not fit."""
    reply.json(_error(Fail(400, "prompt is too long: 214000 tokens > 200000 maximum")), 400)


async def present(_asked: Asked, reply: Reply, _journal: Journal, _pace: Pace) -> None:
    """``HEAD /``: is somebody there?"""
    reply.whole(b"")


ROUTES: dict[tuple[str, str], Callable[[Asked, Reply, Journal, Pace], Awaitable[None]]] = {
    ("POST", "/v1/messages"): messages,
    ("POST", "/v1/messages/count_tokens"): count_tokens,
    ("HEAD", "/"): present,
}


def last_text(body: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
    """The last text *block* of the user, since several prompts can stand in one message, and the results after it."""
    prompt, results = "", list[str]()
    for block in _user_blocks(body):
        if block["type"] == "text" and (has_script(block["text"]) or not block["text"].startswith(ASIDES)):
            prompt, results = block["text"], []
        elif block["type"] == "tool_result":
            results.append(_result(block))
    return prompt, tuple(results)


def _user_blocks(body: dict[str, Any]) -> Iterator[Block]:
    for message in body.get("messages", ()):
        if message["role"] == "user":
            content = message["content"]
            yield from [{"type": "text", "text": content}] if isinstance(content, str) else content


def _result(block: Block) -> str:
    content = block.get("content", "")
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content)


def _asks_for_summary(prompt: str) -> bool:
    return "<summary>" in prompt and not has_script(prompt)


def _summary() -> Answer:
    return Answer((Say(SUMMARY),))


async def _play(wanted: Answer, writer: "_Whole", pace: Pace) -> None:
    reason = "end_turn"
    for step in wanted.steps:
        match step:
            case Say(text):
                writer.block({"type": "text", "text": text}, wanted.usage)
            case Think(text):
                writer.block({"type": "thinking", "thinking": text, "signature": "c2lnbmVk"}, wanted.usage)
            case Call():
                reason = "tool_use"
                writer.block(_tool_use(step, writer.body), wanted.usage)
            case Fail():
                writer.fail(step)
                return
            case _:
                await pace.hold(step)
    writer.end(reason, wanted.usage)


def _tool_use(call: Call, body: dict[str, Any]) -> Block:
    names = [tool.get("name") for tool in body.get("tools", ())]
    name = call.name or next((shell for shell in SHELLS if shell in names), SHELLS[0])
    return {"type": "tool_use", "id": f"toolu_{call.number:04}", "name": name, "input": call.input}


def _usage(usage: Usage) -> dict[str, int]:
    return {
        "input_tokens": usage.read,
        "output_tokens": usage.written,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation_input_tokens": usage.cache_written,
    }


class _Whole:
    """Writes the answer as one JSON object."""

    def __init__(self, body: dict[str, Any], reply: Reply) -> None:
        self.body = body
        self._reply = reply
        self._blocks: list[Block] = []

    def block(self, block: Block, _usage_so_far: Usage) -> None:
        """Add a block."""
        self._blocks.append(block)

    def fail(self, how: Fail) -> None:
        """Answer with an error."""
        self._reply.json(_error(how), how.status, {"retry-after": "0"})

    def end(self, reason: str, usage: Usage) -> None:
        """The answer is complete."""
        self._reply.json({**self._message(usage), "content": self._blocks, "stop_reason": reason})

    def _message(self, usage: Usage) -> dict[str, Any]:
        return {
            "id": f"msg_{next(_ids):04}",
            "type": "message",
            "role": "assistant",
            "model": self.body.get("model", ""),
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": _usage(usage),
        }


class _Streamed(_Whole):
    """Writes the answer as events, each block when its turn comes."""

    def __init__(self, body: dict[str, Any], reply: Reply) -> None:
        super().__init__(body, reply)
        self._number = 0

    def block(self, block: Block, usage: Usage) -> None:
        """Send a block."""
        self._begin(usage)
        empty, delta = _parts(block)
        self._event("content_block_start", index=self._number, content_block=empty)
        for part in delta:
            self._event("content_block_delta", index=self._number, delta=part)
        self._event("content_block_stop", index=self._number)
        self._number += 1

    def fail(self, how: Fail) -> None:
        """Answer with an error: by status, or in the stream when that has begun."""
        if not self._reply.streaming:
            super().fail(how)
            return
        self._event("error", error=_error(how)["error"])
        self._reply.end()

    def end(self, reason: str, usage: Usage) -> None:
        """The answer is complete."""
        self._begin(usage)
        self._event("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage=_usage(usage))
        self._event("message_stop")
        self._reply.end()

    def _begin(self, usage: Usage) -> None:
        if not self._reply.streaming:
            self._event("message_start", message=self._message(usage))

    def _event(self, kind: str, **fields: object) -> None:
        self._reply.event(kind, {"type": kind, **fields})


def _parts(block: Block) -> tuple[Block, list[Block]]:
    """A block as it begins, and what is added to it."""
    match block["type"]:
        case "text":
            return {**block, "text": ""}, [{"type": "text_delta", "text": block["text"]}]
        case "thinking":
            begin = {**block, "thinking": "", "signature": ""}
            thought = {"type": "thinking_delta", "thinking": block["thinking"]}
            return begin, [thought, {"type": "signature_delta", "signature": block["signature"]}]
        case _:
            return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]


def _error(how: Fail) -> dict[str, Any]:
    kind = ERRORS.get(how.status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": how.words or f"scripted {kind}"}}
