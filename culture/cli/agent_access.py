"""Which commands an agent's process may run: those that say so, and no other.

An agent has the user id of its owner, so the command line would let it act as its owner. A command that only shows
something is marked with ``open_to_agents``; every other one is refused, a new one included. ``for_people`` says what an
agent does in its place. Where only an option of an open command is for people, the command calls ``refuse_agents``.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand

from culture.cli.output import fail
from culture.protocol.vocabulary import Exit

_OPEN = "__open_to_agents__"
_INSTEAD = "__instead__"
ASK = "ask one of them"
F = TypeVar("F", bound=Callable[..., Any])


def open_to_agents(function: F) -> F:
    """Mark a command that an agent may run, too."""
    setattr(function, _OPEN, True)
    return function


def for_people(instead: str) -> Callable[[F], F]:
    """Mark a command that agents are refused, with what an agent does in its place."""

    def mark(function: F) -> F:
        setattr(function, _INSTEAD, instead)
        return function

    return mark


def refuse_agents(instead: str = ASK) -> None:
    """End the command if an agent's process runs it."""
    from culture.config.process_owner import own_agent

    agent = own_agent()
    if agent is not None:
        fail(f"this is for people, and you are {agent}: {instead}", Exit.DENIED)


class GuardedCommand(TyperCommand):
    """A command that looks who runs it; its help is for everybody."""

    @property
    def is_open(self) -> bool:
        """Whether an agent may run it."""
        return getattr(self.callback, _OPEN, False)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        if not self.is_open:
            refuse_agents(getattr(self.callback, _INSTEAD, ASK))
        return super().invoke(ctx)


def guarded(group: typer.Typer) -> typer.Typer:
    """The group with each of its commands, and of the groups in it, guarded."""
    for command in group.registered_commands:
        command.cls = GuardedCommand
    for inner in group.registered_groups:
        if inner.typer_instance is not None:
            guarded(inner.typer_instance)
    return group
