"""``culture team init``: a team for the project in this folder."""

import asyncio
import json
import re
from pathlib import Path
from typing import Annotated, Any

import typer

from culture.cli.agent_access import for_people
from culture.cli.agents import agent_login
from culture.cli.agents.irc_session import server_address
from culture.cli.agents.sandbox_choice import SandboxOption, choose_sandbox
from culture.cli.output import fail
from culture.cli.team.select_team import ASK_THERE, TEAM, known
from culture.config import paths
from culture.config.agents import ServerAddress
from culture.config.load import load_team
from culture.config.team import TeamConfig
from culture.lib.files import replace_file
from culture.lib.git import GitFailed
from culture.orchestrator.journal.store import look
from culture.orchestrator.members.other_teams import names_of_others
from culture.orchestrator.names import load as names
from culture.orchestrator.names import next_name
from culture.orchestrator.repository.git import git
from culture.orchestrator.repository.merge import NotMerged, main_branch
from culture.protocol.names import short_name
from culture.protocol.vocabulary import Exit
from culture.wiki.pages import Pages, folder_of

_HEAD = "# A team. Every key is in docs/team/configuration.md; what is left out has its default.\n"
_BUDGET = {"usd": 20, "tokens": 50_000_000}
"""What a new team may use in all: tokens too, as not every backend tells dollars."""
_BUDGET_COMMENT = """\
# What the whole team may use: at the limit everybody stops until a person allows more (culture team budget --usd N).
# A task or each member can have a limit too: {"team": {"usd": 20}, "task": {"usd": 5}, "member": {"usd": 3}}.
"""
_DEFAULT_EM: str = TeamConfig.model_fields["em_name"].default


@for_people(ASK_THERE)
def init(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The project, a git repository.")] = Path("."),
    slug: Annotated[
        str | None, typer.Option("--slug", metavar="SLUG", help="A short name.  [default: the folder's]")
    ] = None,
    agent: Annotated[
        str | None, typer.Option("--agent", metavar="BACKEND", help="Who fills every role, as in `culture backends`.")
    ] = None,
    sandbox: SandboxOption = None,
) -> None:
    """Make a team for a project: its file, its wiki. Nothing is started."""
    project, branch = _project(folder)
    name = slug or _slug(project.name)
    file = paths.team_dir(name) / TEAM
    if file.exists():
        fail(f"{file} is there already; change it, or choose another name with --slug", Exit.USAGE)
    said: dict[str, Any] = {"slug": name, "project_dir": str(project), "branch": branch}
    address = server_address()
    said["server"] = _server(address)
    em = _em_name(project, paths.team_dir(name), address)
    if em != _DEFAULT_EM:
        said["em_name"] = em
    if (chosen := choose_sandbox(sandbox)) is not None:
        said["sandbox"] = chosen.value
    if agent is not None:
        said["roles"] = {role: {"agent": agent} for role in _roles()}
    said["budget"] = {"team": _BUDGET}
    _write(file, said)
    try:
        load_team(file)
    except Exception:
        file.unlink()
        raise
    Pages.create(folder_of(name))
    typer.echo(f"{file} is made. Look it over, then: culture team up")
    limits = f"${_BUDGET['usd']} and {_BUDGET['tokens']:,} tokens"
    typer.echo(f"The team may use {limits} in all; another limit: budget in that file, or culture team budget --usd N.")
    typer.echo(f"People and the EM meet in #project-{name}; what is to be done begins with TASK: there.")


def _em_name(project: Path, folder: Path, address: ServerAddress) -> str:
    """The usual name, unless somebody has or had it: in a team, as an agent, or as an account of this server."""
    if (own := look(folder).em) is not None:
        return own.name  # the team was there before its file
    server = short_name(address.name) if address.name else ""
    configured = [load_team(paths.team_dir(slug) / TEAM).config.em_name for slug in known()]
    taken = [*configured, *names_of_others(folder, server, past=True)]

    def is_known(name: str) -> bool:
        """Whether this nick has mail here, or belongs to an account: of a person, or of an agent that is revoked."""
        nick = f"{server}-{name}"
        return paths.inbox_file(nick).exists() or agent_login.has_account(nick, address)

    return next_name([_DEFAULT_EM, *names(project)], taken, is_known)


def _roles() -> tuple[str, ...]:
    from culture.config.team import ROLES

    return ROLES


def _project(folder: Path) -> tuple[Path, str]:
    """The root of the repository, and the branch that it is on: it counts also when a person goes to another."""
    try:
        root = Path(asyncio.run(git(folder, "rev-parse", "--show-toplevel")).strip())
        branch = asyncio.run(main_branch(root))
    except (GitFailed, NotADirectoryError, FileNotFoundError):
        fail(f"{folder.resolve()} is not in a git repository: git init", Exit.USAGE)
    except NotMerged as wrong:
        fail(str(wrong), Exit.USAGE)
    return root, branch


def _slug(name: str) -> str:
    made = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:20].strip("-")
    if not re.match(r"[a-z]", made):
        fail(f"{name!r} makes no short name: give one with --slug", Exit.USAGE)
    return made


def _server(address: ServerAddress) -> dict[str, Any]:
    return address.model_dump(mode="json", exclude_none=True, exclude_defaults=True) | {
        "host": address.host,
        "port": address.port,
    }


def _write(file: Path, said: dict[str, Any]) -> None:
    comments = {"budget": _BUDGET_COMMENT}
    lines = [f"{comments.get(key, '')}{key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in said.items()]
    replace_file(file, _HEAD + "".join(lines))
