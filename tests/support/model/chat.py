"""The OpenAI Chat Completions API, with and without streaming."""

import json
from collections.abc import Awaitable, Callable, Iterator
from itertools import count
from typing import Any

from tests.support.model.anthropic import ASIDES, SUPERVISOR
from tests.support.model.http import Asked, Reply
from tests.support.model.journal import Journal, Request
from tests.support.model.pace import Pace
from tests.support.model.script import DEFAULT, Answer, Call, Fail, Say, Think, Usage, answer, has_script
from tests.support.model.shells import shell_call
from tests.support.model.told import as_told

Part = dict[str, Any]
MODELS = ("scripted-model", "scripted-small")
_ids = count(1)


async def completions(asked: Asked, reply: Reply, journal: Journal, pace: Pace) -> None:
    """``POST /v1/chat/completions``."""
    body = asked.json()
    prompt, results = last_text(body)
    if _is_of_supervisor(body, prompt):
        # What it is shown is full of other people's scripts.
        wanted = answer(journal.verdicts.pop(0) if journal.verdicts else "[[say OK]]", 0)
    elif not body.get("tools"):
        # A request of the program's own, such as for a title, which repeats somebody's script.
        prompt, results, wanted = "", (), Answer(DEFAULT)
    else:
        wanted = as_told(answer(prompt, len(results)), body, journal)
    journal.write(Request(asked.path, body, prompt, results, dict(asked.headers)))
    writer = _Streamed(body, reply) if body.get("stream") else _Whole(body, reply)
    await _play(wanted, writer, pace)


async def models(_asked: Asked, reply: Reply, _journal: Journal, _pace: Pace) -> None:
    """``GET /v1/models``."""
    reply.json({"object": "list", "data": [{"id": name, "object": "model", "owned_by": "tests"} for name in MODELS]})


ROUTES: dict[tuple[str, str], Callable[[Asked, Reply, Journal, Pace], Awaitable[None]]] = {
    ("POST", "/v1/chat/completions"): completions,
    ("GET", "/v1/models"): models,
}


def last_text(body: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
    """The last text *part* of the user, since several prompts can stand in one message, and the results after it."""
    prompt, results = "", list[str]()
    for message in body.get("messages", ()):
        for text in _texts(message.get("content")):
            if message["role"] == "user" and (has_script(text) or not text.startswith(ASIDES)):
                prompt, results = text, []
        if message["role"] == "tool":
            results.append("".join(_texts(message.get("content"))))
    return prompt, tuple(results)


def _texts(content: str | list[Part] | None) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    else:
        yield from (part["text"] for part in content or () if part["type"] == "text")


def _is_of_supervisor(body: dict[str, Any], prompt: str) -> bool:
    """It says so to the system, or at the head of its prompt; then it has tools, unlike who wants a title for that."""
    system = [each for each in body.get("messages", ()) if each["role"] in ("system", "developer")]
    return SUPERVISOR in json.dumps(system) or bool(body.get("tools") and SUPERVISOR in prompt)


async def _play(wanted: Answer, writer: "_Whole", pace: Pace) -> None:
    reason = "stop"
    for step in wanted.steps:
        match step:
            case Say(text):
                writer.add({"content": text})
            case Think(text):
                writer.add({"reasoning_content": text})
            case Call():
                reason = "tool_calls"
                writer.add({"tool_calls": [_tool_call(step, writer.body)]})
            case Fail():
                writer.fail(step)
                return
            case _:
                await pace.hold(step)
    writer.end(reason, wanted.usage)


def _tool_call(call: Call, body: dict[str, Any]) -> Part:
    name, given = call.name, call.input
    if name is None:
        functions = [tool["function"] for tool in body.get("tools", ()) if "function" in tool]
        schemas = {each["name"]: each.get("parameters", {}) for each in functions}
        name, given = shell_call(schemas, str(call.input["command"]))
    function = {"name": name, "arguments": json.dumps(given)}
    return {"index": 0, "id": f"call_{call.number:04}", "type": "function", "function": function}


def _usage(usage: Usage) -> dict[str, Any]:
    """What is cached is a part of what is read, unlike with Anthropic."""
    read = usage.read + usage.cache_read + usage.cache_written
    return {
        "prompt_tokens": read,
        "completion_tokens": usage.written,
        "total_tokens": read + usage.written,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
    }


class _Whole:
    """Writes the answer as one JSON object."""

    kind = "chat.completion"

    def __init__(self, body: dict[str, Any], reply: Reply) -> None:
        self.body = body
        self._reply = reply
        self._id = f"chatcmpl-{next(_ids):04}"
        self._message: Part = {"role": "assistant", "content": None}

    def add(self, part: Part) -> None:
        """Add text, thinking or a call."""
        for key, value in part.items():
            self._message[key] = (self._message.get(key) or type(value)()) + value

    def fail(self, how: Fail) -> None:
        """Answer with an error."""
        self._reply.json(_error(how), how.status, {"retry-after": "0"})

    def end(self, reason: str, usage: Usage) -> None:
        """The answer is complete."""
        choice = {"index": 0, "message": self._message, "finish_reason": reason}
        self._reply.json(self._envelope([choice], usage=_usage(usage)))

    def _envelope(self, choices: list[Part], **more: object) -> dict[str, Any]:
        return {
            "id": self._id,
            "object": self.kind,
            "created": 0,
            "model": self.body.get("model", ""),
            "choices": choices,
            **more,
        }


class _Streamed(_Whole):
    """Writes the answer as chunks, each part when its turn comes."""

    kind = "chat.completion.chunk"

    def add(self, part: Part) -> None:
        """Send a part."""
        self._chunk({"role": "assistant", **part})

    def fail(self, how: Fail) -> None:
        """Answer with an error: by status, or in the stream when that has begun."""
        if not self._reply.streaming:
            super().fail(how)
            return
        self._reply.event(None, _error(how))
        self._reply.end()

    def end(self, reason: str, usage: Usage) -> None:
        """The answer is complete."""
        self._chunk({}, reason)
        self._reply.event(None, self._envelope([], usage=_usage(usage)))
        self._reply.event(None, "[DONE]")
        self._reply.end()

    def _chunk(self, delta: Part, reason: str | None = None) -> None:
        self._reply.event(None, self._envelope([{"index": 0, "delta": delta, "finish_reason": reason}]))


def _error(how: Fail) -> dict[str, Any]:
    kind = "server_error" if how.status >= 500 else "invalid_request_error"
    return {"error": {"message": how.words or f"scripted {kind}", "type": kind, "param": None, "code": str(how.status)}}
