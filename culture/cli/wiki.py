"""``culture wiki``: a project's wiki pages on the command line, and the wiki's MCP server."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from culture.cli import mcp_serve, output
from culture.cli.agent_access import open_to_agents
from culture.cli.humanize import format_size, format_time
from culture.cli.local_servers import example_nick
from culture.cli.options import AsJson, Choices
from culture.cli.output import as_json as shown_json
from culture.cli.output import fail
from culture.config import paths
from culture.config.errors import ConfigError
from culture.config.load import load_team
from culture.config.process_owner import SOME_AGENT, own_agent
from culture.orchestrator.wiki_record import wiki_folder
from culture.protocol.text import Profile
from culture.protocol.vocabulary import Environment, Exit
from culture.server.core.ids import MICROSECONDS
from culture.wiki.errors import Conflict, NoSuchPage, WikiError, WikiRefused
from culture.wiki.page_templates import PageKind, fill_template
from culture.wiki.pages import Pages, folder_of

group = typer.Typer(help="Read, write and serve the wiki of a project.", no_args_is_help=True)

Project = Annotated[
    str | None,
    typer.Option(
        "--project", "-p", metavar="SLUG", help="Project.  [default: that of this folder's team, or the only one]"
    ),
]
Name = Annotated[
    str, typer.Argument(metavar="PAGE", show_default=False, help="Name of the page, such as plans/e2-cdn.")
]
Number = Annotated[int, typer.Option("-n", "--number", min=1, max=1000, metavar="N", help="Maximum number of results.")]


@group.command()
@open_to_agents
def init(project: Annotated[str, typer.Argument(metavar="SLUG", show_default=False, help="The project.")]) -> None:
    """Create the wiki of a project with its page templates; an existing one is not changed."""
    with _report_errors():
        folder = folder_of(project)
        was_there = Pages(folder).exists
        Pages.create(folder)
        typer.echo(f"{folder} {'existed already' if was_there else 'was created'}; `git clone {folder}` makes a copy.")


@group.command()
@open_to_agents
def read(
    page: Name,
    project: Project = None,
    revision: Annotated[str, typer.Option("--revision", metavar="REVISION", help="Print this revision.")] = "",
    as_json: AsJson = False,
) -> None:
    """Print a page; its revision, author and time go to standard error."""
    with _report_errors():
        content = _wiki(project).read(page, revision)
    if as_json:
        typer.echo(shown_json(asdict(content)))
        return
    typer.echo(f"{content.name}  revision {content.revision}  {content.author}  {_moment(content.time)}", err=True)
    if sys.stdout.isatty() or output.reader() is Profile.MODEL:
        typer.echo(output.clean(content.text), nl=False)
    else:
        typer.echo(content.text.encode(), nl=False)


@group.command()
@open_to_agents
def write(
    page: Name,
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="File with the text; default: standard input.")
    ] = None,
    project: Project = None,
    base: Annotated[
        str, typer.Option("--base", metavar="REVISION", help="The revision you read; none for a new page.")
    ] = "",
    message: Annotated[
        str, typer.Option("--message", "-m", metavar="TEXT", help="Reason for the change, in one line.")
    ] = "",
    template: Annotated[PageKind | None, typer.Option("--template", help="Start the page from this template.")] = None,
    nick: Annotated[str | None, typer.Option("--nick", metavar="NICK", help="Author of the text.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write a page, based on the revision you read.

    If somebody else changed it in the meantime, nothing is written: all three texts are printed, and the exit code is
    1.
    """
    text = fill_template(template, {}) if template else _text(file)
    with _report_errors():
        try:
            result = _wiki(project).write(page, text, base, _author(nick), message)
        except Conflict as conflict:
            typer.echo(shown_json(vars(conflict)) if as_json else _render_conflict(conflict))
            raise
    if as_json:
        typer.echo(shown_json(asdict(result)))
    else:
        typer.echo(f"{result.name}  revision {result.revision}{'' if result.changed else '  (nothing changed)'}")


@group.command("list")
@open_to_agents
def list_pages(
    under: Annotated[str, typer.Argument(metavar="FOLDER", help="Only pages in this folder.")] = "",
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """List the pages, each with its last author."""
    with _report_errors():
        entries = _wiki(project).pages(under)
    rows = [(e.name, e.revision, format_size(e.size), e.author, _moment(e.time)) for e in entries]
    _print([asdict(each) for each in entries], rows, as_json)


@group.command()
@open_to_agents
def search(
    words: Annotated[list[str], typer.Argument(metavar="WORDS", show_default=False, help="Words to search for.")],
    project: Project = None,
    number: Number = 20,
    as_json: AsJson = False,
) -> None:
    """Find pages that contain all these words, in upper or lower case."""
    with _report_errors():
        results = _wiki(project).search(" ".join(words), number)
    rows = [(each.name, f"{line.number}:", line.text) for each in results for line in each.lines]
    _print([asdict(each) for each in results], rows, as_json)


@group.command()
@open_to_agents
def history(page: Name, project: Project = None, number: Number = 20, as_json: AsJson = False) -> None:
    """Show the revisions of a page, newest first."""
    with _report_errors():
        revisions = _wiki(project).history(page, number)
    rows = [(each.revision, _moment(each.time), each.author, each.message) for each in revisions]
    _print([asdict(each) for each in revisions], rows, as_json)


@group.command()
@open_to_agents
def serve(
    project: Project = None,
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="Listen on this address only.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, metavar="PORT", help="Port to listen on; 0 picks a free one.")
    ] = 8809,
    stdio: Annotated[bool, typer.Option("--stdio", help="Serve only the program that started this command.")] = False,
) -> None:
    """Serve the wiki to agents by MCP, at /mcp and /sse, until it is stopped."""
    parts = mcp_serve.load_module("culture.wiki.server")
    with _report_errors():
        wiki = _wiki(project)
        if stdio:
            mcp_serve.serve_stdio(parts.serve_stdio(wiki, _author(None)))

        def shown(port_used: int) -> str:
            place = mcp_serve.format_address(host, port_used)
            return f"{wiki.folder.name} is served at http://{place}/mcp (and /sse); Ctrl-C stops it."

        mcp_serve.serve_http(parts.serving(wiki, host, port, is_trusted=_is_trusted()), host, port, shown)


def _is_trusted() -> bool:
    return paths.server_file().exists() and Choices().load().config.trusted_network


def _wiki(project: str | None) -> Pages:
    """Return the wiki of a project, by default of this folder's team, or else the only wiki.

    The command ends if there is no such wiki, or several.
    """
    wikis = sorted(each.name for each in (paths.home() / "wiki").glob("[!.]*") if Pages(each).exists)
    named = os.environ.get(Environment.WIKI)
    if project is None and named:
        folder = Path(named)
    elif (slug := project or _here()) is not None:
        folder = _of_team(slug) or folder_of(slug)
    elif len(wikis) == 1:
        folder = folder_of(wikis[0])
    else:
        there = f"there are {', '.join(wikis)}" if wikis else "there is none, `culture wiki init` creates one"
        fail(f"which wiki? Choose one with --project: {there}", Exit.USAGE)
    wiki = Pages(folder)
    if not wiki.exists:
        name = folder.name if folder.parent == paths.home() / "wiki" else ""
        fail(f"{name or folder} has no wiki: `culture wiki init {name or 'SLUG'}` creates it")
    return wiki


def _here() -> str | None:
    """Return the slug of the team whose project contains this folder; None for none or several."""
    from culture.cli.team.select_team import teams_of_folder

    try:
        teams = teams_of_folder(Path.cwd())
    except ConfigError:
        return None  # a team's file is broken
    return teams[0] if len(teams) == 1 else None


def _of_team(slug: str) -> Path | None:
    """Return the folder of a team's wiki; None if no team has this slug.

    The command ends if the wiki is on another machine.
    """
    from culture.cli.team.select_team import TEAM, team_slugs

    if slug not in team_slugs():
        return None
    config = load_team(paths.team_dir(slug) / TEAM).config
    if (folder := wiki_folder(config)) is None:
        fail(f"the wiki of {slug} is not on this machine: {config.wiki_mcp_url} serves it by MCP")
    return folder


@contextmanager
def _report_errors() -> Iterator[None]:
    try:
        yield
    except (WikiRefused, NoSuchPage) as wrong:
        fail(str(wrong), Exit.USAGE if isinstance(wrong, WikiRefused) else Exit.FAILED)
    except WikiError as error:
        fail(str(error))


def _author(nick: str | None) -> str:
    """Return the nick of the person or agent who writes a page.

    For an agent it is the agent's nick, for a person ``nick`` or else the person's own. The command ends if an agent
    names another nick.
    """
    agent = own_agent()
    if agent == SOME_AGENT:
        fail(f"you are a process of an agent: {Environment.NICK} must name it", Exit.DENIED)
    if agent and nick not in (None, agent):
        fail(f"you are {agent}, and can write only as yourself", Exit.DENIED)
    return agent or nick or example_nick(Choices().load().config)


def _text(file: Path | None) -> str:
    try:
        data = file.read_bytes() if file and str(file) != "-" else sys.stdin.buffer.read()
        return data.decode()
    except OSError as error:
        fail(f"{file}: {error.strerror}", Exit.USAGE)
    except UnicodeDecodeError:
        fail("the text is not UTF-8", Exit.USAGE)


def _render_conflict(conflict: Conflict) -> str:
    texts = (("base", conflict.base), ("current", conflict.current), ("yours", conflict.yours))
    return output.clean("\n".join(f"===== {name} =====\n{text or ''}" for name, text in texts))


def _moment(seconds: int) -> str:
    return format_time(seconds * MICROSECONDS)


def _print(data: list[dict[str, Any]], rows: Sequence[tuple[str, ...]], as_json: bool) -> None:
    if as_json:
        typer.echo(shown_json(data))
        return
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        typer.echo(output.clean("  ".join(map(str.ljust, row, widths)).rstrip()))
