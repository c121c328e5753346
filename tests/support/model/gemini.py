"""The Gemini API: ``generateContent``, with and without streaming; its paths name the model."""

import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from tests.support.model.anthropic import ASIDES, SUPERVISOR
from tests.support.model.http import Asked, Reply
from tests.support.model.journal import Journal, Request
from tests.support.model.pace import Pace
from tests.support.model.script import DEFAULT, Answer, Call, Fail, Say, Think, Usage, answer, has_script
from tests.support.model.shells import shell_call
from tests.support.model.told import as_told

Part = dict[str, Any]
PREFIX = "/v1beta/models/"
MODELS = ("gemini-2.5-pro", "gemini-2.5-flash", "gemini-2.5-flash-lite")
CONTEXT = "<session_context>"
STREAM, WHOLE, COUNT = ":streamGenerateContent", ":generateContent", ":countTokens"


async def models(asked: Asked, reply: Reply, journal: Journal, pace: Pace) -> None:
    """``POST /v1beta/models/NAME:METHOD``."""
    body = asked.json()
    if asked.path.endswith(COUNT):
        reply.json({"totalTokens": len(asked.content) // 4})
        return
    prompt, results = last_text(body)
    if SUPERVISOR in prompt:
        wanted = answer(journal.verdicts.pop(0) if journal.verdicts else "[[say OK]]", 0)
    elif not body.get("tools"):
        # A request of the program's own, which repeats somebody's script.
        prompt, results, wanted = "", (), Answer(DEFAULT)
    else:
        wanted = as_told(answer(prompt, len(results)), body, journal)
    journal.write(Request(asked.path, body, prompt, results, dict(asked.headers)))
    await _play(wanted, _Writer(body, reply, streamed=asked.path.endswith(STREAM)), pace)


ROUTES: dict[tuple[str, str], Callable[[Asked, Reply, Journal, Pace], Awaitable[None]]] = {
    ("POST", f"{PREFIX}{name}{method}"): models for name in MODELS for method in (STREAM, WHOLE, COUNT)
}


def last_text(body: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
    """The last text of the user, and the results of tools after it."""
    prompt, results = "", list[str]()
    for part in _user_parts(body):
        if "functionResponse" in part:
            results.append(json.dumps(part["functionResponse"].get("response", {})))
        elif has_script(text := part.get("text", "")) or (text and not text.startswith((*ASIDES, CONTEXT))):
            prompt, results = text, []
    return prompt, tuple(results)


def _user_parts(body: dict[str, Any]) -> Iterator[Part]:
    for content in body.get("contents", ()):
        if content.get("role") == "user":
            yield from content.get("parts", ())


async def _play(wanted: Answer, writer: "_Writer", pace: Pace) -> None:
    for step in wanted.steps:
        match step:
            case Say(text):
                writer.add({"text": text})
            case Think(text):
                writer.add({"text": text, "thought": True})
            case Call():
                writer.add({"functionCall": _call(step, writer.body)})
            case Fail():
                writer.fail(step)
                return
            case _:
                await pace.hold(step)
    writer.end(wanted.usage)


def _call(call: Call, body: dict[str, Any]) -> Part:
    if call.name is not None:
        return {"name": call.name, "args": call.input}
    declared = [each for tool in body.get("tools", ()) for each in tool.get("functionDeclarations", ())]
    schemas = {each["name"]: each.get("parametersJsonSchema") or each.get("parameters") or {} for each in declared}
    name, given = shell_call(schemas, str(call.input["command"]))
    return {"name": name, "args": given}


class _Writer:
    """Writes the answer: each part as it comes, or all of them at the end."""

    def __init__(self, body: dict[str, Any], reply: Reply, *, streamed: bool) -> None:
        self.body = body
        self._reply = reply
        self._streamed = streamed
        self._parts: list[Part] = []

    def add(self, part: Part) -> None:
        """Add a part."""
        if self._streamed:
            self._reply.event(None, _answer([part]))
        else:
            self._parts.append(part)

    def fail(self, how: Fail) -> None:
        """Answer with an error."""
        error = {"code": how.status, "message": how.words or "scripted error", "status": "INVALID_ARGUMENT"}
        if self._reply.streaming:
            self._reply.event(None, {"error": error})
            self._reply.end()
        else:
            self._reply.json({"error": error}, how.status)

    def end(self, usage: Usage) -> None:
        """The answer is complete."""
        last = {**_answer(self._parts, "STOP"), "usageMetadata": _usage(usage)}
        if self._streamed:
            self._reply.event(None, last)
            self._reply.end()
        else:
            self._reply.json(last)


def _answer(parts: list[Part], reason: str | None = None) -> dict[str, Any]:
    candidate: dict[str, Any] = {"index": 0, "content": {"role": "model", "parts": parts}}
    return {"candidates": [{**candidate, "finishReason": reason} if reason else candidate]}


def _usage(usage: Usage) -> dict[str, int]:
    read = usage.read + usage.cache_read + usage.cache_written
    return {
        "promptTokenCount": read,
        "candidatesTokenCount": usage.written,
        "cachedContentTokenCount": usage.cache_read,
        "totalTokenCount": read + usage.written,
    }
