"""Fill placeholders in texts: ``Hello {sender}``."""

import re
from collections.abc import Iterator, Mapping

_OF_THE_MESSAGE = ("sender", "text", "target", "prompt")
_OF_THE_AGENT = ("nick", "server", "count", "session", "time", "thinking")
_OF_THE_STEPS = ("output", "code", "round")
PLACES = frozenset((*_OF_THE_MESSAGE, *_OF_THE_AGENT, *_OF_THE_STEPS))
"""Placeholders of all rules; a rule also has the groups of its pattern."""

_PLACE = re.compile(r"(?<!\$)\{\{(\w+)\}\}|(?<!\$)\{(\w+)\}")
_VARIABLE = "PLAYBOOK_"


def places(text: str) -> Iterator[str]:
    """Iterate over the names of the placeholders in a text; ``{{name}}`` is an escaped one."""
    return (found[2] for found in _PLACE.finditer(text) if found[2])


def fill(text: str, values: Mapping[str, str]) -> str:
    """Return the text with its placeholders filled in; unknown ones stay as they are."""
    return _PLACE.sub(lambda found: _filled(found, values), text)


def shell_command(command: str, values: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Return a shell command with its placeholders filled in, and its environment variables.

    The values are passed as variables, so that no value is run as a command.
    """
    known = {name: value for name, value in values.items() if name in set(places(command))}
    text = fill(command, {name: f'"${{{_VARIABLE}{name}}}"' for name in known})
    # No variable can hold a NUL.
    return text, {f"{_VARIABLE}{name}": value.replace("\0", "") for name, value in known.items()}


def _filled(found: re.Match[str], values: Mapping[str, str]) -> str:
    if found[1]:
        return f"{{{found[1]}}}"
    return values.get(found[2], found[0])
