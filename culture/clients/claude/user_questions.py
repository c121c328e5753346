"""Put Claude Code's own questions to people: AskUserQuestion and forms of MCP servers."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

from claude_agent_sdk.types import HookEvent, HookJSONOutput

from culture.clients.shared.questions.elicitation import content_of_schema, fields_of_schema
from culture.clients.shared.turn import FormField, FormReply

Consult = Callable[[Sequence[FormField]], Awaitable[FormReply]]
ELICITATION = cast(HookEvent, "Elicitation")
"""A hook event that is missing in the SDK's types."""
PATIENCE = 7 * 86400.0
"""Timeout of the hook in seconds; longer than the deadline of any question."""
NOBODY = "nobody sits here: ask on IRC, with irc_client ask"


async def answered(given: Mapping[str, Any], consult: Consult | None) -> tuple[dict[str, Any], str]:
    """Put the questions of Claude's tool AskUserQuestion to people.

    Returns the tool's input with the answers, and ""; without answers, an empty input and the reason. ``given``: the
    tool's input; ``consult``: asks people, None if that is not possible.
    """
    questions = [each for each in given.get("questions") or () if isinstance(each, Mapping)]
    if consult is None:
        return {}, NOBODY
    reply = await consult([_field(each) for each in questions])
    if reply.values is None:
        return {}, reply.why
    answers = {str(each["question"]): value for each, value in zip(questions, reply.values, strict=True)}
    return {**given, "answers": answers}, ""


def _field(question: Mapping[str, Any]) -> FormField:
    options = tuple((str(each["label"]), str(each.get("description") or "")) for each in question.get("options") or ())
    return FormField(str(question["question"]), options, several=bool(question.get("multiSelect")))


async def elicited(form: Mapping[str, Any], consult: Consult | None) -> HookJSONOutput:
    """Put a form of an MCP server to people and return their answer in the format of a hook.

    ``consult``: asks people; without it, and for a form that is only a URL, the form is declined.
    """
    schema = form.get("requested_schema")
    if consult is None or form.get("mode") == "url":
        return _output("decline")
    schema = schema if isinstance(schema, Mapping) else {}
    message = f"{form.get('mcp_server_name')}: {form.get('message')}"
    reply = await consult(fields_of_schema(message, schema))
    content = content_of_schema(schema, reply.values) if reply.values is not None else None
    return _output("decline") if content is None else _output("accept", content)


def _output(action: str, content: Mapping[str, Any] | None = None) -> HookJSONOutput:
    filled = {"content": dict(content)} if content is not None else {}
    output = {"hookSpecificOutput": {"hookEventName": "Elicitation", "action": action, **filled}}
    # Claude Code 2.1 expects command output from a callback hook, and reads systemMessage as that.
    return cast(HookJSONOutput, {**output, "systemMessage": json.dumps(output)})
