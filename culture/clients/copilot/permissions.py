"""Convert Copilot's permission requests to tool name and input for people."""

from collections.abc import Mapping
from typing import Any

from copilot.session_events import (
    PermissionRequest,
    PermissionRequestCustomTool,
    PermissionRequestMcp,
    PermissionRequestRead,
    PermissionRequestShell,
    PermissionRequestUrl,
    PermissionRequestWrite,
)


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
