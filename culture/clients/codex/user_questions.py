"""Put Codex's own questions to people: request_user_input and forms of MCP servers."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from culture.clients.shared.questions.elicitation import content_of_schema, fields_of_schema
from culture.clients.shared.turn import FormField, FormReply

Consult = Callable[[Sequence[FormField]], Awaitable[FormReply]]
NOBODY = "nobody sits here: ask on IRC, with irc_client ask"


async def answered(params: Mapping[str, Any], consult: Consult) -> dict[str, Any]:
    """Put Codex's questions to people and return the answers in Codex's format.

    A secret is not asked for in a channel; its answer says so. ``consult``: asks people.
    """
    questions = [each for each in params.get("questions") or () if isinstance(each, dict)]
    if any(each.get("isSecret") for each in questions):
        reply = FormReply(why="secrets are not asked for in a room")
    else:
        reply = await consult([_field(each) for each in questions])
    values = reply.values or [f"(no answer: {reply.why})"] * len(questions)
    return {"answers": {each["id"]: {"answers": [value]} for each, value in zip(questions, values, strict=True)}}


def _field(question: Mapping[str, Any]) -> FormField:
    options = tuple((str(each["label"]), str(each.get("description") or "")) for each in question.get("options") or ())
    return FormField(str(question["question"]), options)


async def elicited(params: Mapping[str, Any], consult: Consult) -> dict[str, Any]:
    """Put a form of an MCP server to people and return their answer; forms by URL are declined.

    ``consult``: asks people.
    """
    schema = params.get("requestedSchema")
    if not isinstance(schema, dict) or params.get("mode", "form") != "form":
        return accepted(None)
    reply = await consult(fields_of_schema(f"{params.get('serverName')}: {params.get('message')}", schema))
    return accepted(content_of_schema(schema, reply.values) if reply.values is not None else None)


def accepted(content: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the response to a form: accept with ``content``, or decline if it is None."""
    return {"action": "decline" if content is None else "accept", "content": content}


def tool_call(params: Mapping[str, Any]) -> tuple[str, dict[str, object]]:
    """Return name and input of an MCP tool for which Codex requests permission by a form."""
    about = params.get("_meta") or {}
    given = {"message": params.get("message"), **{name: value for name, value in about.items() if name != "persist"}}
    return f"{params.get('serverName')}.{about.get('tool_name') or 'tool'}", given
