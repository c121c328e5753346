"""``culture pause`` and ``culture resume``."""

from typing import Annotated

import typer

from culture.cli.agents.select_agents import Nick, listed, picked
from culture.cli.agents.sudo import delegated
from culture.cli.output import fail
from culture.clients.shared import pidfile
from culture.clients.shared.skill.call import CallFailed, call

PATIENCE = 10.0


def pause(nick: Nick) -> None:
    """Let an agent rest.

    A turn that has begun goes on to its end; what is said to it afterwards is
    kept, and the sender is told.
    """
    name = _tell(nick, "pause")
    typer.echo(f"{name} is paused; what is said to it waits. `culture resume {name}` lets it go on.")


def resume(
    nick: Nick,
    reason: Annotated[str, typer.Option(help="Why, for the agent: it reads this with its next prompt.")] = "",
) -> None:
    """Let an agent go on that was paused, or parked after too many crashes."""
    typer.echo(f"{_tell(nick, 'resume', reason)} goes on.")


def _tell(nick: str, word: str, reason: str = "") -> str:
    [name] = picked([*listed(), *pidfile.all_running()], [nick], everyone=False)
    code = delegated(name, word, *([f"--reason={reason}"] if reason else []))
    if code is not None:
        raise typer.Exit(code)
    try:
        call(name, word, {"reason": reason} if reason else {}, patience=PATIENCE)
    except CallFailed as failure:
        fail(str(failure))
    return name
