"""Put Codex's requests to people: approvals, its own questions, and forms of MCP servers."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from culture.clients.codex.answer import EDIT, SHELL, Item, command_of
from culture.clients.shared.asking import Ask
from culture.clients.shared.questions.elicitation import content_of_schema, fields_of_schema
from culture.clients.shared.questions.file_changes import unified
from culture.clients.shared.turn import FormField, FormReply

CANCEL = {"decision": "cancel"}
Consult = Callable[[Sequence[FormField]], Awaitable[FormReply]]
NOBODY = "nobody sits here: ask on IRC, with irc_client ask"


async def answer_request(
    method: str, params: dict[str, Any], item: Item, folder: Path, ask: Ask, consult: Consult
) -> tuple[dict[str, Any] | None, str]:
    """Return the answer to an approval request of Codex, and the reason if it was refused.

    The answer is None if the method is unknown. ``item``: the thread item that needs approval; ``folder``: the
    agent's folder; ``ask`` asks people for a permission, ``consult`` for other answers.
    """
    match method:
        case "item/tool/requestUserInput":
            return await answer_questions(params, consult), ""
        case "mcpServer/elicitation/request" if (params.get("_meta") or {}).get("codex_approval_kind"):
            permit = await ask(*tool_call(params))
            return form_response({} if permit.allowed else None), permit.why
        case "mcpServer/elicitation/request":
            return await answer_form(params, consult), ""
        case "item/commandExecution/requestApproval":
            permit = await ask(*_command(params))
        case "item/fileChange/requestApproval":
            permit = await ask(EDIT, _change(params, item, folder))
        case "item/permissions/requestApproval":
            permit = await ask("Permissions", _details(params, "permissions", "cwd"))
            return {"permissions": params["permissions"] if permit.allowed else {}}, permit.why
        case _:
            return None, ""
    if permit.allowed:
        return {"decision": "accept"}, ""
    return (CANCEL if permit.interrupt else {"decision": "decline"}), permit.why


def _command(params: dict[str, Any]) -> tuple[str, dict[str, object]]:
    """Return tool name and input of a command for which Codex requests approval.

    The name is ``Escalation`` if the command needs extra permissions.
    """
    more = _details(params, "networkApprovalContext", "additionalPermissions")
    command = {"command": command_of(params.get("command") or "")}
    if set(more) - {"description"} or params.get("kind", "command") != "command":
        return "Escalation", {**more, "wanted": command["command"], "kind": params.get("kind", "command")}
    return SHELL, {**command, **more}


def _change(params: dict[str, Any], item: Item, folder: Path) -> dict[str, object]:
    changes = item.get("changes") or []
    more = _details(params, "grantRoot")
    if len(changes) == 1 and "grantRoot" not in more:
        path = Path(changes[0]["path"])
        shown = path.relative_to(folder) if path.is_relative_to(folder) else path
        return {"file_path": str(shown), "diff": _diff(changes[0], str(shown)), **more}
    return {"changes": [{"file": each["path"], "diff": _diff(each, each["path"])} for each in changes], **more}


def _diff(change: dict[str, Any], path: str) -> str:
    """Return the diff of one changed file; ``path``: the file's name in the diff.

    For added and deleted files Codex sends the contents, from which the diff is computed.
    """
    text = str(change["diff"])
    match change.get("kind"):
        case {"type": "add"}:
            return unified("", text, path)
        case {"type": "delete"}:
            return unified(text, "", path)
        case {"type": "update", "move_path": str(moved)}:
            return f"(moved to {moved})\n{text}"
    return text


def _details(params: dict[str, Any], *names: str) -> dict[str, object]:
    """Return those of the named parameters that are set, and the agent's reason.

    The reason has the name ``description``.
    """
    details: dict[str, object] = {name: params[name] for name in names if params.get(name)}
    return {**details, "description": params["reason"]} if params.get("reason") else details


async def answer_questions(params: Mapping[str, Any], consult: Consult) -> dict[str, Any]:
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


async def answer_form(params: Mapping[str, Any], consult: Consult) -> dict[str, Any]:
    """Put a form of an MCP server to people and return their answer; forms by URL are declined.

    ``consult``: asks people.
    """
    schema = params.get("requestedSchema")
    if not isinstance(schema, dict) or params.get("mode", "form") != "form":
        return form_response(None)
    reply = await consult(fields_of_schema(f"{params.get('serverName')}: {params.get('message')}", schema))
    return form_response(content_of_schema(schema, reply.values) if reply.values is not None else None)


def form_response(content: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the response to a form: accept with ``content``, or decline if it is None."""
    return {"action": "decline" if content is None else "accept", "content": content}


def tool_call(params: Mapping[str, Any]) -> tuple[str, dict[str, object]]:
    """Return name and input of an MCP tool for which Codex requests permission by a form."""
    about = params.get("_meta") or {}
    given = {"message": params.get("message"), **{name: value for name, value in about.items() if name != "persist"}}
    return f"{params.get('serverName')}.{about.get('tool_name') or 'tool'}", given
