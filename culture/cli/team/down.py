"""``culture team down``: the orchestrator and every member stop; everything is kept."""

import signal
from contextlib import suppress
from typing import Annotated

import typer

from culture.cli.agent_access import for_people
from culture.cli.agents.start import at_once
from culture.cli.amounts import counted
from culture.cli.failing import fail
from culture.cli.progress import elapsing
from culture.cli.team.place import ASK_THERE, Slug, chosen, running, socket_name
from culture.clients.shared.ending import Ended, end_now
from culture.clients.shared.skill.call import CallFailed, call
from culture.config import paths
from culture.config.process import is_gone, pinned
from culture.orchestrator.book import look
from culture.protocol.vocabulary import Exit

GRACE = 120.0
"""An orchestrator that is just starting brings its EM to work first."""


@for_people(ASK_THERE)
def down(
    slug: Slug = None,
    members: Annotated[bool, typer.Option("--members/--no-members", help="End the members too.")] = True,
) -> None:
    """Stop a team. Worktrees, sessions and what was not answered yet are kept: `culture team up` goes on from there."""
    config = chosen(slug)
    with elapsing("The orchestrator stops"):
        was_there = _stop(config.slug)
    typer.echo("The orchestrator has stopped." if was_there else "The orchestrator was not running.")
    if not members:
        return
    nicks = [member.nick for member in look(paths.team_dir(config.slug)).members.values()]
    with elapsing(f"{counted(len(nicks), 'member', 'members')} stop"):
        codes = at_once(_end, nicks)
    if any(codes):
        raise typer.Exit(Exit.FAILED)


def end(slug: str) -> bool:
    """End an orchestrator, and leave its members; whether it went."""
    _stop(slug)
    return running(slug) is None


def _stop(slug: str) -> bool:
    pid = running(slug)
    if pid is None:
        return False
    with pinned(pid) as process:
        if process is None:
            return False
        try:
            call(socket_name(slug), "stop")
        except CallFailed:
            # It is about to start, and not yet to be asked, or hangs; a signal is heard in any case.
            with suppress(ProcessLookupError):  # it went by itself
                signal.pidfd_send_signal(process, signal.SIGTERM)
        if not is_gone(process, GRACE):
            fail(f"the orchestrator (pid {pid}) does not stop; see {paths.log_file(f'team-{slug}')}")
    return True


def _end(nick: str) -> int:
    how, _ = end_now(nick)
    if how is Ended.STAYS:
        typer.echo(f"culture: {nick} {how.value}; see {paths.log_file(nick)}", err=True)
        return Exit.FAILED
    if how is not Ended.NOT_THERE:
        typer.echo(f"{nick} {how.value}.")
    return Exit.DONE
