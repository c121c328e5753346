"""The OpenAI Responses API, with and without streaming."""

import json
import re
from collections.abc import Awaitable, Callable, Iterator
from itertools import count
from typing import Any

from tests.support.model.http import Asked, Reply
from tests.support.model.journal import Journal, Request
from tests.support.model.pace import Pace
from tests.support.model.script import Answer, Call, Fail, Say, Think, Usage, answer, has_script
from tests.support.model.told import as_told

Item = dict[str, Any]
# The names of shell tools, and what their command is called there.
SHELLS = {"exec_command": "cmd", "shell_command": "command", "bash": "command", "Bash": "command"}
ERRORS = {
    400: "invalid_request_error",
    401: "invalid_api_key",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_exceeded",
    500: "server_error",
    503: "server_is_overloaded",
}
# What an error is called that begins with this word, whatever its status.
CODES = ("context_length_exceeded", "usage_limit_reached")
# What programs add to a user's messages of their own accord; it counts as a prompt only when it carries a script.
ASIDES = ("<", "# AGENTS.md instructions", "Warning: ", "[SUPERVISOR/", "[REFUSED] ")
SUPERVISOR = "You are a supervisor monitoring"
SUMMARISES = "CONTEXT CHECKPOINT COMPACTION"
# The last item of a request that wants its context shortened by the provider itself.
COMPACTS = {"type": "compaction_trigger"}
SUMMARY = "What was said before."
# Our own calls; whatever else stands there as the output of a tool was put there from outside, and is a prompt.
_OURS = re.compile(r"call_\d{4,}$")
_ids = count(1)


async def responses(asked: Asked, reply: Reply, journal: Journal, pace: Pace) -> None:
    """``POST /v1/responses``."""
    body = asked.json()
    prompt, results = last_text(body)
    journal.write(Request(asked.path, body, prompt, results, dict(asked.headers)))
    if SUPERVISOR in _instructed(body):
        # What it is shown is full of other people's scripts.
        wanted = answer(journal.verdicts.pop(0) if journal.verdicts else "[[say OK]]", 0)
    elif SUMMARISES in prompt and not has_script(prompt):
        wanted = Answer((Say(SUMMARY),))
    else:
        wanted = as_told(answer(prompt, len(results)), body, journal)
    writer = _Streamed(body, reply) if body.get("stream") else _Whole(body, reply)
    if body["input"][-1:] == [COMPACTS]:
        writer.item({"type": "compaction", "encrypted_content": SUMMARY})
        writer.end(wanted.usage)
    else:
        await _play(wanted, writer, pace)


async def no_websocket(_asked: Asked, reply: Reply, _journal: Journal, _pace: Pace) -> None:
    """``GET /v1/responses``: who wants a WebSocket is sent back to streams of events."""
    reply.json(_error(Fail(426)), 426)


ROUTES: dict[tuple[str, str], Callable[[Asked, Reply, Journal, Pace], Awaitable[None]]] = {
    ("POST", "/v1/responses"): responses,
    ("GET", "/v1/responses"): no_websocket,
}


def too_long(reply: Reply) -> None:
    """What is answered when the context does not fit."""
    reply.json(_error(Fail(400, "context_length_exceeded Your input exceeds the context window")), 400)


def last_text(body: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
    """The last prompt, and the results of tools after it; a prompt may come as the output of a tool nobody called."""
    prompt, results = "", list[str]()
    for item in _items(body):
        text = _text(item)
        if _is_result(item):
            results.append(text)
        elif has_script(text) or not text.startswith(ASIDES):
            prompt, results = text, []
    return prompt, tuple(results)


def _items(body: dict[str, Any]) -> Iterator[Item]:
    given = body.get("input", ())
    if isinstance(given, str):
        yield {"role": "user", "content": given}
        return
    for item in given:
        if item.get("role") == "user":
            yield from ({"role": "user", "content": [part]} for part in _parts(item["content"]))
        elif item.get("type") in ("function_call_output", "custom_tool_call_output"):
            yield item


def _is_result(item: Item) -> bool:
    return "call_id" in item and _OURS.match(item["call_id"]) is not None


def _text(item: Item) -> str:
    return "".join(part.get("text", "") for part in _parts(item.get("output", item.get("content", ""))))


def _parts(content: str | list[Item]) -> list[Item]:
    return [{"text": content}] if isinstance(content, str) else content


def _instructed(body: dict[str, Any]) -> str:
    told = [item for item in body.get("input", ()) if isinstance(item, dict) and item.get("role") != "user"]
    return json.dumps(
        [body.get("instructions"), [item for item in told if item.get("role") in ("developer", "system")]]
    )


async def _play(wanted: Answer, writer: "_Whole", pace: Pace) -> None:
    for step in wanted.steps:
        match step:
            case Say(text):
                content = [{"type": "output_text", "text": text, "annotations": []}]
                writer.item({"type": "message", "role": "assistant", "status": "completed", "content": content})
            case Think(text):
                writer.item({"type": "reasoning", "summary": [{"type": "summary_text", "text": text}]})
            case Call():
                writer.item(_function_call(step, writer.body))
            case Fail():
                writer.fail(step)
                return
            case _:
                await pace.hold(step)
    writer.end(wanted.usage)


def _function_call(call: Call, body: dict[str, Any]) -> Item:
    names = [tool.get("name") for tool in body.get("tools", ())]
    name, given = call.name, call.input
    if name is None:
        name = next((shell for shell in SHELLS if shell in names), next(iter(SHELLS)))
        given = {SHELLS[name]: given["command"]}
    called = {"call_id": f"call_{call.number:04}", "name": name, "status": "completed", **_namespace(name, body)}
    return {"type": "function_call", "arguments": json.dumps(given), **called}


def _namespace(name: str, body: dict[str, Any]) -> dict[str, str]:
    """Where a tool is that does not stand in the list of tools itself."""
    folders = (tool for tool in body.get("tools", ()) if tool.get("type") == "namespace")
    for folder in folders:
        if any(tool.get("name") == name for tool in folder.get("tools", ())):
            return {"namespace": folder["name"]}
    return {}


def _usage(usage: Usage) -> dict[str, Any]:
    read = usage.read + usage.cache_read + usage.cache_written
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": usage.cache_read},
        "output_tokens": usage.written,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": read + usage.written,
    }


class _Whole:
    """Writes the answer as one JSON object."""

    def __init__(self, body: dict[str, Any], reply: Reply) -> None:
        self.body = body
        self._reply = reply
        self._id = f"resp_{next(_ids):04}"
        self._output: list[Item] = []

    def item(self, item: Item) -> None:
        """Add an item."""
        self._output.append({"id": f"item_{next(_ids):04}", **item})

    def fail(self, how: Fail) -> None:
        """Answer with an error."""
        self._reply.json(_error(how), how.status, {"retry-after": "0"})

    def end(self, usage: Usage) -> None:
        """The answer is complete."""
        self._reply.json(self._response("completed", usage=_usage(usage)))

    def _response(self, status: str, **fields: object) -> dict[str, Any]:
        known = {"id": self._id, "object": "response", "created_at": 0, "model": self.body.get("model", "")}
        return {**known, "status": status, "output": self._output, **fields}


class _Streamed(_Whole):
    """Writes the answer as events, each item when its turn comes."""

    def __init__(self, body: dict[str, Any], reply: Reply) -> None:
        super().__init__(body, reply)
        self._number = count()

    def item(self, item: Item) -> None:
        """Send an item."""
        self._begin()
        super().item(item)
        done, place = self._output[-1], len(self._output) - 1
        for kind, fields in _events(done):
            self._event(kind, output_index=place, **fields)

    def fail(self, how: Fail) -> None:
        """Answer with an error: by status, or in the stream when that has begun."""
        if not self._reply.streaming:
            super().fail(how)
            return
        self._event("response.failed", response=self._response("failed", error=_error(how)["error"]))
        self._reply.end()

    def end(self, usage: Usage) -> None:
        """The answer is complete."""
        self._begin()
        self._event("response.completed", response=self._response("completed", usage=_usage(usage)))
        self._reply.end()

    def _begin(self) -> None:
        if not self._reply.streaming:
            self._event("response.created", response=self._response("in_progress"))

    def _event(self, kind: str, **fields: object) -> None:
        self._reply.event(kind, {"type": kind, "sequence_number": next(self._number), **fields})


def _events(item: Item) -> Iterator[tuple[str, dict[str, Any]]]:
    """An item as it begins, what is added to it, and as it is in the end."""
    match item["type"]:
        case "message":
            (part,) = item["content"]
            where = {"item_id": item["id"], "content_index": 0}
            yield "response.output_item.added", {"item": {**item, "status": "in_progress", "content": []}}
            yield "response.content_part.added", {**where, "part": {**part, "text": ""}}
            yield "response.output_text.delta", {**where, "delta": part["text"]}
            yield "response.output_text.done", {**where, "text": part["text"]}
            yield "response.content_part.done", {**where, "part": part}
        case "reasoning":
            (part,) = item["summary"]
            where = {"item_id": item["id"], "summary_index": 0}
            yield "response.output_item.added", {"item": {**item, "summary": []}}
            yield "response.reasoning_summary_part.added", {**where, "part": {**part, "text": ""}}
            yield "response.reasoning_summary_text.delta", {**where, "delta": part["text"]}
            yield "response.reasoning_summary_text.done", {**where, "text": part["text"]}
            yield "response.reasoning_summary_part.done", {**where, "part": part}
        case "function_call":
            where = {"item_id": item["id"]}
            yield "response.output_item.added", {"item": {**item, "status": "in_progress", "arguments": ""}}
            yield "response.function_call_arguments.delta", {**where, "delta": item["arguments"]}
            yield "response.function_call_arguments.done", {**where, "arguments": item["arguments"]}
    yield "response.output_item.done", {"item": item}


def _error(how: Fail) -> dict[str, Any]:
    word = how.words.partition(" ")[0]
    kind = word if word in CODES else ERRORS.get(how.status, "server_error")
    return {"error": {"type": kind, "code": kind, "message": how.words or f"scripted {kind}", "param": None}}
