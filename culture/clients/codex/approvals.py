"""Answer Codex's approval requests, by asking people."""

from pathlib import Path
from typing import Any

from culture.clients.codex import user_questions
from culture.clients.codex.answer import EDIT, SHELL, Item, command_of
from culture.clients.codex.user_questions import Consult
from culture.clients.shared.asking import Ask
from culture.clients.shared.questions.file_changes import unified

CANCEL = {"decision": "cancel"}


async def answered(
    method: str, params: dict[str, Any], item: Item, folder: Path, ask: Ask, consult: Consult
) -> tuple[dict[str, Any] | None, str]:
    """Return the answer to an approval request of Codex, and the reason if it was refused.

    The answer is None if the method is unknown. ``item``: the thread item that needs approval; ``folder``: the
    agent's folder; ``ask`` asks people for a permission, ``consult`` for other answers.
    """
    match method:
        case "item/tool/requestUserInput":
            return await user_questions.answered(params, consult), ""
        case "mcpServer/elicitation/request" if (params.get("_meta") or {}).get("codex_approval_kind"):
            permit = await ask(*user_questions.tool_call(params))
            return user_questions.accepted({} if permit.allowed else None), permit.why
        case "mcpServer/elicitation/request":
            return await user_questions.elicited(params, consult), ""
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
