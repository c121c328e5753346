"""Texts with places to fill in: ``Hello {sender}``."""

import re
from collections.abc import Iterator, Mapping

_OF_THE_MESSAGE = ("sender", "text", "target", "prompt")
_OF_THE_AGENT = ("nick", "server", "count", "session", "time", "thinking")
_OF_THE_STEPS = ("output", "code", "round")
PLACES = frozenset((*_OF_THE_MESSAGE, *_OF_THE_AGENT, *_OF_THE_STEPS))
"""What every rule knows; the groups of its pattern come on top."""

_PLACE = re.compile(r"(?<!\$)\{\{(\w+)\}\}|(?<!\$)\{(\w+)\}")
_VARIABLE = "PLAYBOOK_"


def places(text: str) -> Iterator[str]:
    """The names a text wants filled in; ``{{name}}`` is not one of them."""
    return (found[2] for found in _PLACE.finditer(text) if found[2])


def fill(text: str, values: Mapping[str, str]) -> str:
    """The text with its places filled in; what is not known stays as it is."""
    return _PLACE.sub(lambda found: _filled(found, values), text)


def shell_command(command: str, values: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """A command and the variables it needs: what others wrote is data to the shell, never part of it."""
    known = {name: value for name, value in values.items() if name in set(places(command))}
    text = fill(command, {name: f'"${{{_VARIABLE}{name}}}"' for name in known})
    # No variable can hold a NUL.
    return text, {f"{_VARIABLE}{name}": value.replace("\0", "") for name, value in known.items()}


def _filled(found: re.Match[str], values: Mapping[str, str]) -> str:
    if found[1]:
        return f"{{{found[1]}}}"
    return values.get(found[2], found[0])
