"""``culture team init``: a new team; ``culture team logins``: accounts for a team elsewhere.

A team makes the accounts of its members itself. Where it must not read the server's accounts file (in a container,
for example), a person makes them beforehand with ``logins``, which prints a nick and a token per line.
"""

import asyncio
import json
import re
import sys
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from culture.cli.agent_access import for_people
from culture.cli.agents import agent_login
from culture.cli.agents.agents_yaml import SandboxOption, choose_sandbox
from culture.cli.agents.irc_session import server_address
from culture.cli.options import Choices, ConfigFile
from culture.cli.output import fail
from culture.cli.team.select_team import ASK_THERE, TEAM, team_slugs
from culture.config import paths
from culture.config.agents import ServerAddress
from culture.config.load import load_team
from culture.config.team import TeamConfig
from culture.lib.files import replace_file
from culture.lib.git import GitFailed
from culture.orchestrator.journal.store import read_state
from culture.orchestrator.names import SHIPPED, names_of_other_teams, next_name, next_names, read_list
from culture.orchestrator.names import load as names
from culture.orchestrator.repository.git import git
from culture.orchestrator.repository.merge import NotMerged, main_branch
from culture.protocol.names import short_name, valid_nick
from culture.protocol.vocabulary import Exit
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import AccountRefused
from culture.wiki.pages import Pages, folder_of

_HEAD = "# A team. Every key is in docs/team/configuration.md; what is left out has its default.\n"
_BUDGET = {"usd": 20, "tokens": 50_000_000}
"""Limit of a new team; tokens too, since not every backend reports dollars."""
_BUDGET_COMMENT = """\
# What the whole team may use: at the limit everybody stops until a person allows more (culture team budget --usd N).
# A task or each member can have a limit too: {"team": {"usd": 20}, "task": {"usd": 5}, "member": {"usd": 3}}.
"""
_DEFAULT_EM: str = TeamConfig.model_fields["em_name"].default


@for_people(ASK_THERE)
def init(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The project, a git repository.")] = Path("."),
    slug: Annotated[
        str | None, typer.Option("--slug", metavar="SLUG", help="Short name of the team.  [default: from the folder]")
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option("--agent", metavar="BACKEND", help="Backend of every role; `culture backends` lists them."),
    ] = None,
    sandbox: SandboxOption = None,
) -> None:
    """Create a team for a project: its file and its wiki. Nothing is started."""
    project, branch = _project(folder)
    name = slug or _slug(project.name)
    file = paths.team_dir(name) / TEAM
    if file.exists():
        fail(f"{file} is there already; change it, or choose another name with --slug", Exit.USAGE)
    settings: dict[str, Any] = {"slug": name, "project_dir": str(project), "branch": branch}
    address = server_address()
    settings["server"] = _server(address)
    em = _em_name(project, paths.team_dir(name), address)
    if em != _DEFAULT_EM:
        settings["em_name"] = em
    if (sandbox_kind := choose_sandbox(sandbox)) is not None:
        settings["sandbox"] = sandbox_kind.value
    if agent is not None:
        settings["roles"] = {role: {"agent": agent} for role in _roles()}
    settings["budget"] = {"team": _BUDGET}
    _write(file, settings)
    try:
        load_team(file)
    except Exception:
        file.unlink()
        raise
    Pages.create(folder_of(name))
    typer.echo(f"Wrote {file}. Check it, then type: culture team up")
    limits = f"${_BUDGET['usd']} and {_BUDGET['tokens']:,} tokens"
    typer.echo(f"The team may use {limits} in all; another limit: budget in that file, or culture team budget --usd N.")
    typer.echo(f"Talk to the EM in #project-{name}; begin a task there with TASK:")


def _em_name(project: Path, folder: Path, address: ServerAddress) -> str:
    """Return a name for a team's EM that no account has: the default name, or a variant of it.

    ``project``: the git repository. ``folder``: the team's folder; a team that already has an EM keeps its name.
    ``address``: the server.
    """
    if (own := read_state(folder).em) is not None:
        return own.name  # the team is older than its file
    server = short_name(address.name) if address.name else ""
    configured = [load_team(paths.team_dir(slug) / TEAM).config.em_name for slug in team_slugs()]
    used_names = [*configured, *names_of_other_teams(folder, server, past=True)]

    def is_known(name: str) -> bool:
        """Whether the nick made from ``name`` has an inbox file here or belongs to an account.

        Revoked accounts count too.
        """
        nick = f"{server}-{name}"
        return paths.inbox_file(nick).exists() or agent_login.has_account(nick, address)

    return next_name([_DEFAULT_EM, *names(project)], used_names, is_known)


def _roles() -> tuple[str, ...]:
    from culture.config.team import ROLES

    return ROLES


def _project(folder: Path) -> tuple[Path, str]:
    """Return the root of the git repository that contains a folder, and its main branch.

    The command ends if there is no repository.
    """
    try:
        root = Path(asyncio.run(git(folder, "rev-parse", "--show-toplevel")).strip())
        branch = asyncio.run(main_branch(root))
    except (GitFailed, NotADirectoryError, FileNotFoundError):
        fail(f"{folder.resolve()} is not in a git repository: git init", Exit.USAGE)
    except NotMerged as wrong:
        fail(str(wrong), Exit.USAGE)
    return root, branch


def _slug(name: str) -> str:
    result = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:20].strip("-")
    if not re.match(r"[a-z]", result):
        fail(f"{name!r} cannot be made a short name: give one with --slug", Exit.USAGE)
    return result


def _server(address: ServerAddress) -> dict[str, Any]:
    return address.model_dump(mode="json", exclude_none=True, exclude_defaults=True) | {
        "host": address.host,
        "port": address.port,
    }


def _write(file: Path, settings: dict[str, Any]) -> None:
    comments = {"budget": _BUDGET_COMMENT}
    lines = [
        f"{comments.get(key, '')}{key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in settings.items()
    ]
    replace_file(file, _HEAD + "".join(lines))


NUMBER = 100
_LONGEST_NICK = 64


@for_people(ASK_THERE)
def logins(
    slug: Annotated[
        str | None, typer.Argument(metavar="SLUG", show_default=False, help="Team; leave it out with --take.")
    ] = None,
    em: Annotated[str, typer.Option("--em", metavar="NAME", help="The name of its EM.")] = _DEFAULT_EM,
    number: Annotated[int, typer.Option("--number", "-n", min=1, max=1000, help="Number of members.")] = NUMBER,
    take: Annotated[
        bool, typer.Option("--take", help="Read what the other side printed from standard input, and store it.")
    ] = False,
    config: ConfigFile = None,
) -> None:
    """Make accounts for a team in another home folder, and print their tokens.

    Use it for a container or a user that must not read the server's files: run it where the server is, and pipe it
    into `culture team logins --take` where the team is. Earlier tokens stop working.
    """
    if take:
        _take()
        return
    if slug is None:
        fail("which team? `culture team logins SLUG`", Exit.USAGE)
    server = Choices(config).load().config
    store = AccountStore(server.accounts_file, server.account_prefix)
    names = islice(next_names(read_list(SHIPPED), [em]), number)
    for name in (f"team-{slug}", em, *names):
        nick = f"{server.short_name}-{name}"
        try:
            typer.echo(f"{nick} {agent_login.issue_token(nick, store, always_on=False)}")
        except (agent_login.NoLogin, AccountRefused) as refused:
            fail(f"{nick}: {refused}")


def _take() -> None:
    number = 0
    for line in sys.stdin:
        nick, _, token = line.strip().partition(" ")
        if not valid_nick(nick, _LONGEST_NICK) or not token.isascii() or not token.isprintable() or " " in token:
            fail("this is not output of `culture team logins`: a nick and a token per line", Exit.USAGE)
        agent_login.store_token(nick, token)
        number += 1
    if not number:
        fail("no input: pipe `culture team logins SLUG` into this command", Exit.USAGE)
    typer.echo(f"{number} logins are stored.")
