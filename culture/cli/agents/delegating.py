"""Commands about an agent that runs as another user are run again as that user."""

import json
from typing import Any

import typer

from culture.cli import output
from culture.cli.agents.as_user import WrongUser, other_user, run_as
from culture.cli.agents.known import listed
from culture.config.agents import AgentConfig
from culture.protocol.vocabulary import Exit


def delegated(nick: str, command: str, *options: str) -> int | None:
    """Run the command as the agent's user and show what it says: its exit code; None when the agent is ours."""
    agent = listed().get(nick)
    try:
        user = other_user(agent) if agent is not None else None
        if user is None:
            return None
        done = run_as(user, "culture", command, nick, *options)
    except WrongUser as wrong:
        typer.echo(f"culture: {wrong}", err=True)
        return Exit.FAILED
    # That user is not ours, and may be an agent that does not mean us well.
    typer.echo(output.shown(done.stdout), nl=False)
    typer.echo(output.shown(done.stderr), nl=False, err=True)
    return done.returncode


def delegated_report(agent: AgentConfig) -> dict[str, Any] | None:
    """What `culture status` says as the agent's user; None when the agent is ours, or the user has nothing to say."""
    try:
        user = other_user(agent)
        done = run_as(user, "culture", "status", agent.nick, "--json") if user is not None else None
    except WrongUser:
        return None
    try:
        found = json.loads(done.stdout) if done is not None else None
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
