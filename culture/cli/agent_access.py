"""Decides which commands an agent's process may run.

Problem: an agent has the user id of its owner, so the command line would let it act as its owner.

Rule: an agent may run only the commands that are marked with ``open_to_agents``; they only show something. Every
other command, a new one included, is refused with exit code 4. ``for_people`` names what an agent does instead. Where
only one option of an open command is for people, the command calls ``refuse_agents``.

Example: `culture status` is marked. `culture stop` is not: an agent that types it reads "this command is for people".
"""

import re
from collections.abc import Callable
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand

from culture.cli.output import fail
from culture.protocol.vocabulary import Exit

_PYTHON_TYPE = re.compile(r" <(?:list\[str\]|str|path|int range)>$")
_OPEN = "__open_to_agents__"
_INSTEAD = "__instead__"
ASK = "ask one of them"
F = TypeVar("F", bound=Callable[..., Any])


def open_to_agents(function: F) -> F:
    """Mark a command function as one that agents may run too, and return it."""
    setattr(function, _OPEN, True)
    return function


def for_people(instead: str) -> Callable[[F], F]:
    """Return a decorator for commands that refuse agents and print ``instead``.

    ``instead``: what an agent can do in place of the command.
    """

    def mark(function: F) -> F:
        setattr(function, _INSTEAD, instead)
        return function

    return mark


def refuse_agents(instead: str = ASK) -> None:
    """End the command with exit code DENIED if an agent's process runs it, else do nothing.

    ``instead``: what an agent can do in place of the command; it is printed.
    """
    from culture.config.process_owner import own_agent

    agent = own_agent()
    if agent is not None:
        fail(f"this command is for people, and you are {agent}: {instead}", Exit.DENIED)


class GuardedCommand(TyperCommand):
    """A Typer command that agents may run only if it is marked as open to them.

    Everybody may read its help.
    """

    @property
    def is_open(self) -> bool:
        """Whether agents may run this command."""
        return getattr(self.callback, _OPEN, False)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options into the command's help, without Typer's Python type names.

        ``ctx``: Click's context of the command. ``formatter``: Click's formatter, to which the text is written.
        """
        rows: dict[str, list[tuple[str, str]]] = {"argument": [], "option": []}
        for parameter in self.get_params(ctx):
            if record := parameter.get_help_record(ctx):
                rows[parameter.param_type_name].append(record)
        arguments = [(_PYTHON_TYPE.sub("", name), text) for name, text in rows["argument"]]
        for title, records in (("Arguments", arguments), ("Options", rows["option"])):
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; end it with exit code DENIED if an agent runs it and may not.

        ``ctx``: Click's context of the command.
        """
        if not self.is_open:
            refuse_agents(getattr(self.callback, _INSTEAD, ASK))
        return super().invoke(ctx)


def guard_group(group: typer.Typer) -> typer.Typer:
    """Make all commands of a group, and of groups in it, ``GuardedCommand``; return the group."""
    for command in group.registered_commands:
        command.cls = GuardedCommand
    for inner in group.registered_groups:
        if inner.typer_instance is not None:
            guard_group(inner.typer_instance)
    return group
