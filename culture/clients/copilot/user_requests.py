"""Put Copilot's requests to people: permissions, ask_user, and forms of MCP servers."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from copilot.session import ElicitationContext, ElicitationResult, UserInputRequest, UserInputResponse
from copilot.session_events import (
    PermissionRequest,
    PermissionRequestCustomTool,
    PermissionRequestMcp,
    PermissionRequestRead,
    PermissionRequestShell,
    PermissionRequestUrl,
    PermissionRequestWrite,
)

from culture.clients.shared.questions.elicitation import content_of_schema, fields_of_schema
from culture.clients.shared.turn import FormField, FormReply

Consult = Callable[[Sequence[FormField]], Awaitable[FormReply]]
NOBODY = "nobody sits here: ask on IRC, with irc_client ask"


def wanted(request: PermissionRequest) -> tuple[str, Mapping[str, object]]:
    """Return tool name and input of a permission request.

    The name is one that people write in patterns like ``Bash(git status:*)``.
    """
    match request:
        case PermissionRequestShell():
            return "Bash", {"command": request.full_command_text, "description": request.intention}
        case PermissionRequestWrite():
            return "Write", {"file_path": request.file_name, "diff": request.diff}
        case PermissionRequestRead():
            return "Read", {"file_path": request.path}
        case PermissionRequestUrl():
            return "WebFetch", {"url": request.url}
        case PermissionRequestMcp():
            return f"{request.server_name}-{request.tool_name}", _given(request.args)
        case PermissionRequestCustomTool():
            return request.tool_name, _given(request.args)
        case _:
            return request.kind, request.to_dict()


def _given(arguments: Any) -> Mapping[str, object]:
    return arguments if isinstance(arguments, dict) else {"input": arguments}


async def answered(request: UserInputRequest, consult: Consult) -> UserInputResponse:
    """Put a question of Copilot to people; return the answer, or the reason why there is none.

    ``consult``: asks people.
    """
    options = tuple((str(each), "") for each in request.get("choices") or ())
    reply = await consult([FormField(request["question"], options)])
    if reply.values is None:
        return {"answer": f"(no answer: {reply.why})", "wasFreeform": True}
    return {"answer": reply.values[0], "wasFreeform": not options}


async def elicited(form: ElicitationContext, consult: Consult) -> ElicitationResult:
    """Put a form of an MCP server to people and return their answer; forms by URL are declined.

    ``consult``: asks people.
    """
    if form.get("mode") == "url":
        return {"action": "decline"}
    schema = form.get("requestedSchema") or {}
    message = f"{form.get('elicitationSource') or 'an MCP server'}: {form['message']}"
    reply = await consult(fields_of_schema(message, schema))
    content = content_of_schema(schema, reply.values) if reply.values is not None else None
    return {"action": "decline"} if content is None else {"action": "accept", "content": content}
