"""Builds the parts of a team from its file: IRC connection, journal, daemons, wiki."""

import asyncio

from culture.cli import local_servers
from culture.cli.agents import agent_login, daemon_launch
from culture.cli.output import fail
from culture.config import paths
from culture.config.installation import installation
from culture.config.team import TeamConfig
from culture.lib.process.background import BackgroundProcess
from culture.orchestrator.errors import MemberNotStarted
from culture.orchestrator.irc import TeamRooms
from culture.orchestrator.journal.store import TeamStore
from culture.orchestrator.members.daemons import Launch, MemberDaemons
from culture.orchestrator.members.roster import AGENTS, MemberConfigs
from culture.orchestrator.repository.git import git
from culture.orchestrator.repository.merge import main_branch
from culture.orchestrator.repository.worktrees import Worktrees
from culture.orchestrator.team_context import TeamContext
from culture.orchestrator.wiki_record import WikiRecord, wiki_folder
from culture.protocol.names import short_name
from culture.protocol.vocabulary import Exit, WellKnownChannel
from culture.transport import Address, ClientIdentity
from culture.wiki.client import LocalWiki, WikiClient
from culture.wiki.pages import Pages
from culture.wiki.queue import QueuedWiki


def launcher(config: TeamConfig) -> Launch:
    """Return a function that starts the daemon of a team member, given by its nick.

    It makes the member's account if missing. The account is not always on: the member is present only while its daemon
    is connected.
    """

    def launch(nick: str) -> BackgroundProcess:
        try:
            agent_login.prepare_login(nick, config.server, always_on=False)
        except agent_login.NoLogin as wrong:
            raise MemberNotStarted(str(wrong)) from None
        return daemon_launch.launch(nick, paths.team_dir(config.slug) / AGENTS)

    return launch


async def assemble(config: TeamConfig, launch: Launch | None = None) -> TeamContext:
    """Return the parts of a team, not yet started: journal, members, wiki, IRC connection.

    ``launch``: starts the daemon of a member, by default ``launcher(config)``.
    """
    folder, project = paths.team_dir(config.slug), config.project_dir
    server = _server_name(config)
    nick = f"{server}-team-{config.slug}"
    main = await main_branch(project, config.branch)
    book = TeamStore(folder)
    book.open()
    em = f"{server}-{config.em_name}"
    roster = MemberConfigs(config, folder, main, nick, em)
    hint = await asyncio.to_thread(agent_login.prepare_login, nick, config.server, False)
    if hint:
        fail(hint)
    token = agent_login.read_token(nick)
    where = config.server
    channels = [config.project_channel, config.standup_channel, WellKnownChannel.ERRORS.value]
    rooms = TeamRooms(
        Address(where.host, where.port, where.tls, where.fingerprint, where.user),
        ClientIdentity(nick, nick if token else None, token, realname=f"the team {config.slug}"),
        folder,
        book,
        [*channels, *(task.channel for task in book.state.live_tasks())],
        config.pm,
        em,
    )
    record = WikiRecord(QueuedWiki(_wiki(config), folder / "wiki-queue"), nick)
    daemons = MemberDaemons(
        launch or launcher(config),
        dismiss=lambda nick: agent_login.revoke_account(nick, config.server),
        has_account=lambda nick: agent_login.has_account(nick, config.server),
    )
    worktrees = Worktrees(project, config.worktrees)
    return TeamContext(
        config, server, folder, main, await _remote(config), book, rooms, roster, daemons, worktrees, record
    )


def _server_name(config: TeamConfig) -> str:
    if config.server.name:
        return short_name(config.server.name)
    own = local_servers.own_server(config.server)
    if own is None:
        fail("server.name is missing in team.yaml: every nick begins with it", Exit.WRONG_CONFIGURATION)
    return own.short_name


async def _remote(config: TeamConfig) -> str | None:
    """Return the name of the git remote to which a team pushes, or None.

    It is the configured one, else ``origin`` if the project has it.
    """
    if config.remote is not None:
        return config.remote
    return "origin" if "origin" in (await git(config.project_dir, "remote")).split() else None


def _wiki(config: TeamConfig) -> WikiClient:
    """Return the client of a team's wiki, which is on this machine or behind an MCP address."""
    folder = wiki_folder(config)
    if folder is None:
        try:
            from culture.wiki.remote import RemoteWiki  # heavy, and an optional package
        except ModuleNotFoundError as missing:
            fail(f"{missing.name} is not installed: {installation().extend('bridge')}", Exit.WRONG_CONFIGURATION)
        return RemoteWiki(config.wiki_mcp_url or "")
    return LocalWiki(Pages.create(folder))
