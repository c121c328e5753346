"""The command line as data: the commands, their options, and what each value can be."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

import typer

from culture.cli.commands import assembled

NICKS, FILES = "nicks", "files"
"""Kinds of values that are not one of a few words: the nick of an agent, a file."""
_METAVARS = {"NICK": NICKS, "AGENT": NICKS, "TARGET": NICKS, "FILE": FILES, "FOLDER": FILES}
_OWN = "--nick"
"""Option whose nick is the person's own, not an agent's."""


@dataclass(frozen=True, slots=True)
class CommandNode:
    """A command or a group of commands of the command line, with its options and inner commands."""

    help: str
    """First sentence of its help."""
    inner: dict[str, "CommandNode"] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)
    """Name of every option → its help."""
    takes: dict[str, str] = field(default_factory=dict)
    """Options that take a value → NICKS, FILES, the possible words, or an empty string if unknown."""
    argument: str = ""
    """Kind of its first argument, as in ``takes``."""


def tree(words: Mapping[str, Iterable[str]] | None = None) -> CommandNode:
    """Return the whole command line as a tree; the root is `culture` itself.

    ``words``: for a metavar such as ``BACKEND``, the values that an argument can have.
    """
    kinds = {name: " ".join(choices) for name, choices in (words or {}).items()}
    return _node(typer.main.get_command(assembled()), {**_METAVARS, **kinds})


def _node(command: Any, kinds: Mapping[str, str]) -> CommandNode:
    options, takes, argument = {"--help": "Show this message and exit."}, {}, ""
    for each in command.params:
        if each.param_type_name == "argument":
            argument = argument or _kind(each, kinds)
            continue
        for name in (*each.opts, *each.secondary_opts):
            options[name] = each.help or ""
            if not each.is_flag and not each.count:
                takes[name] = "" if name == _OWN else _kind(each, kinds)
    inner = getattr(command, "commands", {})
    below = {name: _node(found, kinds) for name, found in inner.items() if not found.hidden}
    return CommandNode(_sentence(command.help or ""), below, options, takes, argument)


def _kind(parameter: Any, kinds: Mapping[str, str]) -> str:
    annotation = getattr(getattr(parameter, "type_descriptor", None), "annotation", None)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return " ".join(str(each.value) for each in annotation)
    word = re.match(r"\[?([A-Z]+)", parameter.metavar or "")
    return kinds.get(word[1], "") if word else ""


def _sentence(text: str) -> str:
    return " ".join(text.split("\n\n")[0].split())


NICKS_COMMAND = r"""sed -n 's/.*nick["'\'']*: *["'\'']*\([A-Za-z0-9_-]*\).*/\1/p' """
"""sed command that prints the nicks of an agents.yaml."""
FILE = "${CULTURE_HOME:-$HOME/.culture}/agents.yaml"


class CommandRow(NamedTuple):
    """A command and its path: the words that one types for it, without `culture`."""

    path: str
    node: CommandNode


def rows(node: CommandNode, path: str = "") -> Iterator[CommandRow]:
    """Yield a command or group and all commands below it, each group before its commands.

    ``path``: the words that lead to ``node``, with which the path of each row begins.
    """
    yield CommandRow(path, node)
    for name, inner in node.inner.items():
        yield from rows(inner, f"{path} {name}".lstrip())
