"""``culture team down``: the orchestrator and every member stop; everything is kept."""

import asyncio
import signal
from contextlib import suppress
from typing import Annotated

import typer

from culture.cli.agent_access import for_people
from culture.cli.agents.start import at_once
from culture.cli.humanize import counted
from culture.cli.output import fail
from culture.cli.progress import elapsing
from culture.cli.server.background import check_server, culture_command
from culture.cli.team.select_team import ASK_THERE, Slug, chosen, running, socket_name
from culture.clients.shared.backends import NoBackend
from culture.clients.shared.ending import Ended, end_now
from culture.clients.shared.skill.call import CallFailed, call
from culture.clients.shared.socket_file import SocketTaken
from culture.clients.shared.socket_server import SocketServer
from culture.config import paths
from culture.config.team import TeamConfig
from culture.lib import sd_notify
from culture.lib.log_lines import start_logging
from culture.lib.process.background import BackgroundProcess, EndedEarly
from culture.lib.process.handle import is_gone, pinned
from culture.orchestrator.errors import NotHired
from culture.orchestrator.journal.store import look
from culture.orchestrator.repository.locks import Busy, held, lock_files
from culture.orchestrator.repository.merge import NotMerged
from culture.protocol.vocabulary import Exit
from culture.transport import Hopeless, WrongServer

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


PATIENCE = 120.0


@for_people(ASK_THERE)
def up(
    slug: Slug = None,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Return when the team is at work.")] = False,
) -> None:
    """Bring a team to work, or take it up again where it was.

    Its members are processes of their own: they go on when this one ends. `culture team down` ends all.
    """
    config = chosen(slug)
    _check(config)
    if detach:
        _detached(config)
        return
    start_logging()
    try:
        asyncio.run(_stay(config))
    except Busy as busy:
        fail(str(busy))
    except (NotHired, SocketTaken, WrongServer) as wrong:
        fail(str(wrong))
    except (NotMerged, Hopeless, NoBackend) as wrong:
        fail(str(wrong), Exit.WRONG_CONFIGURATION)


def _check(config: TeamConfig) -> None:
    pid = running(config.slug)
    if pid is not None:
        fail(f"the team {config.slug} is at work already (pid {pid})")
    check_server(config.server, "team.yaml")
    if not config.project_dir.is_dir():
        fail(f"{config.project_dir} is not there", Exit.WRONG_CONFIGURATION)


async def _stay(config: TeamConfig) -> None:
    from culture.cli.team.factory import assemble
    from culture.orchestrator.control import ControlSocket
    from culture.orchestrator.idle_judge import judge
    from culture.orchestrator.team import Team

    told = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    with held(config.slug, *await lock_files(paths.team_dir(config.slug), config.project_dir)):
        parts = await assemble(config)
        asks = config.idle_check == "model"
        team = Team(parts, judge(config.role("documenter"), parts.em, config.project_dir) if asks else None)
        socket, alias = paths.agent_socket(socket_name(config.slug)), paths.socket_alias(socket_name(config.slug))
        # Who leaves the commands aside and asks the socket is no less an agent.
        server = SocketServer(socket, ControlSocket(team, told.set).answer, for_people=lambda type: True, alias=alias)
        async with team.running():
            await server.start()
            try:
                typer.echo(f"The team {config.slug} is at work: {config.project_channel} on {config.server.host}.")
                sd_notify.notify("READY=1")
                await told.wait()
            finally:
                await server.stop()
    typer.echo("The orchestrator has stopped; the members go on. `culture team down` ends them too.")


def _detached(config: TeamConfig) -> None:
    log, socket = paths.log_file(f"team-{config.slug}"), paths.agent_socket(socket_name(config.slug))
    process = BackgroundProcess("it", culture_command("team", "up", "--team", config.slug), log)
    try:
        with elapsing(f"The team {config.slug} comes together"):
            pid = process.wait_until(
                lambda pid: pid if socket.exists() and running(config.slug) == pid else None, PATIENCE
            )
    except EndedEarly as early:
        fail("\n  ".join([f"the team {config.slug} did not start:", *early.text.splitlines()]))
    if pid is None:
        fail(f"the team {config.slug} is not there after {PATIENCE:g} s; see {log}")
    typer.echo(f"The team {config.slug} is at work (pid {pid}): {config.project_channel}. Log: {log}")
