"""Add our hooks to Claude Code's own settings, for a session started by hand."""

import copy
import json
import shlex
import sys
from typing import Any

MODULE = "culture.clients.shared.skill.hook"
EVENTS = ("SessionStart", "PostToolUse", "PostToolUseFailure", "Stop")
SETTINGS = ".claude/settings.json"
_SECONDS = 10


class WrongSettings(Exception):
    """Claude Code's settings file cannot be extended; the text says why."""


def added(settings: str | None) -> str:
    """Return the settings file's JSON text with culture's hooks added; older ones are replaced.

    ``settings``: the present text; None if there is no file. Raises ``WrongSettings`` if it is not as expected.
    """
    said = _read(settings)
    hooks = said.setdefault("hooks", {})
    if not isinstance(hooks, dict):
        raise WrongSettings("hooks is no object")
    for event in EVENTS:
        others = hooks.get(event, [])
        if not isinstance(others, list):
            raise WrongSettings(f"hooks.{event} is no list")
        hooks[event] = [*(entry for entry in others if MODULE not in json.dumps(entry)), _entry()]
    return json.dumps(said, indent=2, ensure_ascii=False) + "\n"


def _read(settings: str | None) -> dict[str, Any]:
    try:
        said = json.loads(settings) if settings and settings.strip() else {}
    except ValueError as error:
        raise WrongSettings(f"is no JSON: {error}") from None
    if not isinstance(said, dict):
        raise WrongSettings("is no object")
    return copy.deepcopy(said)


def _entry() -> dict[str, object]:
    # -P: do not import modules from the folder that Claude works in.
    command = f"{shlex.quote(sys.executable)} -P -m {MODULE}"
    return {"hooks": [{"type": "command", "command": command, "timeout": _SECONDS}]}
