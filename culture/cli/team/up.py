"""``culture team up``: the orchestrator of a team, in this terminal or in the background."""

import asyncio
import signal
from typing import Annotated

import typer

from culture.cli.agent_access import for_people
from culture.cli.background import Begun, EndedEarly, check_server
from culture.cli.failing import fail
from culture.cli.progress import elapsing
from culture.cli.team.place import ASK_THERE, Slug, chosen, running, socket_name
from culture.clients.shared.backends import NoBackend
from culture.clients.shared.socket_file import SocketTaken
from culture.clients.shared.socket_server import SocketServer
from culture.config import notify, paths
from culture.config.log_lines import start_logging
from culture.config.team import TeamConfig
from culture.orchestrator.errors import NotHired
from culture.orchestrator.lock import Busy, held, lock_files
from culture.orchestrator.merging import NotMerged
from culture.protocol.vocabulary import Exit
from culture.transport import Hopeless, WrongServer

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
    from culture.cli.team.assembling import assemble
    from culture.orchestrator.control import Control
    from culture.orchestrator.judging import judge
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
        server = SocketServer(socket, Control(team, told.set).answer, for_people=lambda type: True, alias=alias)
        async with team.running():
            await server.start()
            try:
                typer.echo(f"The team {config.slug} is at work: {config.project_channel} on {config.server.host}.")
                notify.notify("READY=1")
                await told.wait()
            finally:
                await server.stop()
    typer.echo("The orchestrator has stopped; the members go on. `culture team down` ends them too.")


def _detached(config: TeamConfig) -> None:
    log, socket = paths.log_file(f"team-{config.slug}"), paths.agent_socket(socket_name(config.slug))
    begun = Begun("it", ["team", "up", "--team", config.slug], log)
    try:
        with elapsing(f"The team {config.slug} comes together"):
            pid = begun.until(lambda pid: pid if socket.exists() and running(config.slug) == pid else None, PATIENCE)
    except EndedEarly as early:
        fail("\n  ".join([f"the team {config.slug} did not start:", *early.text.splitlines()]))
    if pid is None:
        fail(f"the team {config.slug} is not there after {PATIENCE:g} s; see {log}")
    typer.echo(f"The team {config.slug} is at work (pid {pid}): {config.project_channel}. Log: {log}")
