"""The command line as a value: which commands there are, what each takes, and what is to be filled in."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import typer

from culture.cli.commands import assembled

NICKS, FILES = "nicks", "files"
"""What can stand in a place, where it is not one of some words: the nick of an agent, a file."""
_METAVARS = {"NICK": NICKS, "AGENT": NICKS, "TARGET": NICKS, "FILE": FILES, "FOLDER": FILES}
_OWN = "--nick"
"""The nick that it takes is the person's."""


@dataclass(frozen=True, slots=True)
class CommandNode:
    """A command, or a group of them."""

    help: str
    """What it does, in a sentence."""
    inner: dict[str, "CommandNode"] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)
    """Every option, and what it is for."""
    takes: dict[str, str] = field(default_factory=dict)
    """The options that take a value, and what that can be: NICKS, FILES, some words, or nothing that is known."""
    argument: str = ""
    """What its first argument can be."""


def tree(words: Mapping[str, Iterable[str]] | None = None) -> CommandNode:
    """All commands; ``words`` says what can stand for a metavar, such as ``BACKEND``."""
    known = {name: " ".join(choices) for name, choices in (words or {}).items()}
    return _node(typer.main.get_command(assembled()), {**_METAVARS, **known})


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
