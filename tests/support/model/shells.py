"""The shell among a program's own tools: each has its name and its form for it."""

from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]
NAMES = ("Bash", "bash", "run_shell_command", "run_commands", "execute_command", "shell", "shell_command")
# What a tool wants beside the command, by the type that its schema names.
FILLERS: dict[str, object] = {"string": "scripted", "boolean": False, "number": 60, "integer": 60, "array": []}


def shell_call(tools: Mapping[str, Schema], command: str) -> tuple[str, dict[str, object]]:
    """The name of the shell among the tools, and what it is given to run a command; ``tools`` are name and schema."""
    name = next((each for each in NAMES if each in tools), NAMES[0])
    schema = tools.get(name, {})
    properties: Mapping[str, Schema] = schema.get("properties", {})
    given = {each: FILLERS.get(_kind(properties.get(each, {})), "") for each in schema.get("required", ())}
    if "commands" in properties:
        return name, {**given, "commands": [command]}
    return name, {**given, "command": command}


def _kind(schema: Schema) -> str:
    """The type of a value, as JSON Schema or as Gemini spells it."""
    return str(schema.get("type", "string")).lower()
