"""``culture team up`` and ``culture team down``: starts and stops a team."""

import asyncio
import signal
from contextlib import suppress
from typing import Annotated

import typer

from culture.cli.agent_access import for_people
from culture.cli.agents.lifecycle import run_parallel
from culture.cli.humanize import counted
from culture.cli.output import fail
from culture.cli.progress import elapsing
from culture.cli.server.background import check_server, culture_command
from culture.cli.team.select_team import ASK_THERE, Slug, orchestrator_pid, select_team, socket_name
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
from culture.orchestrator.journal.store import read_state
from culture.orchestrator.repository.locks import OrchestratorBusy, hold_locks, lock_files
from culture.orchestrator.repository.merge import NotMerged
from culture.protocol.vocabulary import Exit
from culture.transport import Hopeless, WrongServer

GRACE = 120.0
"""Seconds; an orchestrator that is starting first finishes the start of its EM."""


@for_people(ASK_THERE)
def down(
    slug: Slug = None,
    members: Annotated[bool, typer.Option("--members/--no-members", help="Stop the members too.")] = True,
) -> None:
    """Stop a team.

    Worktrees, sessions and unanswered messages are kept for the next `culture team up`.
    """
    config = select_team(slug)
    with elapsing("Stopping the orchestrator"):
        was_there = _stop(config.slug)
    typer.echo("The orchestrator has stopped." if was_there else "The orchestrator was not running.")
    if not members:
        return
    nicks = [member.nick for member in read_state(paths.team_dir(config.slug)).members.values()]
    with elapsing(f"Stopping {counted(len(nicks), 'member', 'members')}"):
        codes = run_parallel(_end, nicks)
    if any(codes):
        raise typer.Exit(Exit.FAILED)


def end(slug: str) -> bool:
    """Stop a team's orchestrator, but not the members; return whether it no longer runs.

    The command ends if the process does not exit in time.
    """
    _stop(slug)
    return orchestrator_pid(slug) is None


def _stop(slug: str) -> bool:
    pid = orchestrator_pid(slug)
    if pid is None:
        return False
    with pinned(pid) as process:
        if process is None:
            return False
        try:
            call(socket_name(slug), "stop")
        except CallFailed:
            # It is starting, and not listening yet, or it hangs; a signal works in any case.
            with suppress(ProcessLookupError):  # it has exited by itself
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
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Run in the background; return when the team is running.")
    ] = False,
) -> None:
    """Start a team, or continue its work.

    Its members are processes of their own: they go on when this command ends. `culture team down` stops all.
    """
    config = select_team(slug)
    _check(config)
    if detach:
        _detached(config)
        return
    start_logging()
    try:
        asyncio.run(_stay(config))
    except OrchestratorBusy as busy:
        fail(str(busy))
    except (NotHired, SocketTaken, WrongServer) as wrong:
        fail(str(wrong))
    except (NotMerged, Hopeless, NoBackend) as wrong:
        fail(str(wrong), Exit.WRONG_CONFIGURATION)


def _check(config: TeamConfig) -> None:
    pid = orchestrator_pid(config.slug)
    if pid is not None:
        fail(f"the team {config.slug} is running already (pid {pid})")
    check_server(config.server, "team.yaml")
    if not config.project_dir.is_dir():
        fail(f"{config.project_dir} is not there", Exit.WRONG_CONFIGURATION)


async def _stay(config: TeamConfig) -> None:
    from culture.cli.team.factory import assemble
    from culture.orchestrator.control import ControlSocket
    from culture.orchestrator.heartbeat import judge
    from culture.orchestrator.team import Team

    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    with hold_locks(config.slug, *await lock_files(paths.team_dir(config.slug), config.project_dir)):
        parts = await assemble(config)
        asks = config.idle_check == "model"
        team = Team(parts, judge(config.role("documenter"), parts.em, config.project_dir) if asks else None)
        socket, alias = paths.agent_socket(socket_name(config.slug)), paths.socket_alias(socket_name(config.slug))
        # The socket is for people too: an agent might ask it directly.
        server = SocketServer(socket, ControlSocket(team, stop.set).answer, for_people=lambda type: True, alias=alias)
        async with team.running():
            await server.start()
            try:
                typer.echo(f"The team {config.slug} is at work: {config.project_channel} on {config.server.host}.")
                sd_notify.notify("READY=1")
                await stop.wait()
            finally:
                await server.stop()
    typer.echo("The orchestrator has stopped; the members keep running. `culture team down` stops them too.")


def _detached(config: TeamConfig) -> None:
    log, socket = paths.log_file(f"team-{config.slug}"), paths.agent_socket(socket_name(config.slug))
    process = BackgroundProcess("it", culture_command("team", "up", "--team", config.slug), log)
    try:
        with elapsing(f"Starting the team {config.slug}"):
            pid = process.wait_until(
                lambda pid: pid if socket.exists() and orchestrator_pid(config.slug) == pid else None, PATIENCE
            )
    except EndedEarly as early:
        fail("\n  ".join([f"the team {config.slug} did not start:", *early.text.splitlines()]))
    if pid is None:
        fail(f"the team {config.slug} is not there after {PATIENCE:g} s; see {log}")
    typer.echo(f"The team {config.slug} is at work (pid {pid}): {config.project_channel}. Log: {log}")
