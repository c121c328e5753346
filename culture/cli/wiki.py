"""``culture wiki``: the pages of a project, from the command line and as an MCP server."""

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
from culture.cli.connect_hints import example_nick
from culture.cli.humanize import shown_moment, shown_size
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
from culture.wiki.page_templates import PageKind, filled
from culture.wiki.pages import Pages, folder_of

group = typer.Typer(help="Pages that outlast the talk: read, write, serve to agents.", no_args_is_help=True)

Project = Annotated[
    str | None,
    typer.Option(
        "--project", "-p", metavar="SLUG", help="Whose wiki.  [default: that of this folder's team, or the only one]"
    ),
]
Name = Annotated[str, typer.Argument(metavar="PAGE", show_default=False, help="Such as plans/e2-cdn.")]
Number = Annotated[int, typer.Option("-n", "--number", min=1, max=1000, metavar="N", help="At most so many.")]


@group.command()
@open_to_agents
def init(project: Annotated[str, typer.Argument(metavar="SLUG", show_default=False, help="The project.")]) -> None:
    """Make the wiki of a project, with the forms of its pages; one that is there stays as it is."""
    with _told():
        folder = folder_of(project)
        was_there = Pages(folder).exists
        Pages.create(folder)
        typer.echo(f"{folder} {'was there already' if was_there else 'is made'}; `git clone {folder}` takes a copy.")


@group.command()
@open_to_agents
def read(
    page: Name,
    project: Project = None,
    revision: Annotated[str, typer.Option("--revision", metavar="REVISION", help="As it was then.")] = "",
    as_json: AsJson = False,
) -> None:
    """Print a page; its revision, author and time go to standard error."""
    with _told():
        found = _wiki(project).read(page, revision)
    if as_json:
        typer.echo(shown_json(asdict(found)))
        return
    typer.echo(f"{found.name}  revision {found.revision}  {found.author}  {_moment(found.time)}", err=True)
    if sys.stdout.isatty() or output.reader() is Profile.MODEL:
        typer.echo(output.shown(found.text), nl=False)
    else:
        typer.echo(found.text.encode(), nl=False)


@group.command()
@open_to_agents
def write(
    page: Name,
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="The text; standard input without it.")] = None,
    project: Project = None,
    base: Annotated[
        str, typer.Option("--base", metavar="REVISION", help="The revision you read; none for a new page.")
    ] = "",
    message: Annotated[str, typer.Option("--message", "-m", metavar="TEXT", help="Why, in a line.")] = "",
    template: Annotated[PageKind | None, typer.Option("--template", help="Begin the page with this form.")] = None,
    nick: Annotated[str | None, typer.Option("--nick", metavar="NICK", help="Whose text it is.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write a page on top of the revision that was read.

    When somebody else wrote it meanwhile nothing is changed: all three texts
    are printed, and the exit code is 1.
    """
    text = filled(template, {}) if template else _text(file)
    with _told():
        try:
            written = _wiki(project).write(page, text, base, _author(nick), message)
        except Conflict as conflict:
            typer.echo(shown_json(vars(conflict)) if as_json else _shown(conflict))
            raise
    if as_json:
        typer.echo(shown_json(asdict(written)))
    else:
        typer.echo(f"{written.name}  revision {written.revision}{'' if written.changed else '  (nothing changed)'}")


@group.command("list")
@open_to_agents
def list_pages(
    under: Annotated[str, typer.Argument(metavar="FOLDER", help="Only those in it.")] = "",
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """List the pages, with who wrote them last."""
    with _told():
        found = _wiki(project).pages(under)
    rows = [(e.name, e.revision, shown_size(e.size), e.author, _moment(e.time)) for e in found]
    _print([asdict(each) for each in found], rows, as_json)


@group.command()
@open_to_agents
def search(
    words: Annotated[list[str], typer.Argument(metavar="WORDS", show_default=False, help="What to look for.")],
    project: Project = None,
    number: Number = 20,
    as_json: AsJson = False,
) -> None:
    """Find the pages that have all these words, in any case."""
    with _told():
        found = _wiki(project).search(" ".join(words), number)
    rows = [(each.name, f"{line.number}:", line.text) for each in found for line in each.lines]
    _print([asdict(each) for each in found], rows, as_json)


@group.command()
@open_to_agents
def history(page: Name, project: Project = None, number: Number = 20, as_json: AsJson = False) -> None:
    """Show who wrote a page when, newest first."""
    with _told():
        found = _wiki(project).history(page, number)
    rows = [(each.revision, _moment(each.time), each.author, each.message) for each in found]
    _print([asdict(each) for each in found], rows, as_json)


@group.command()
@open_to_agents
def serve(
    project: Project = None,
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="Listen on this address alone.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, metavar="PORT", help="0 takes a free one.")] = 8809,
    stdio: Annotated[
        bool, typer.Option("--stdio", help="Serve the program that started this, and nobody else.")
    ] = False,
) -> None:
    """Serve the wiki to agents by MCP, at /mcp and /sse, until told to stop."""
    parts = mcp_serve.loaded("culture.wiki.server")
    with _told():
        wiki = _wiki(project)
        if stdio:
            mcp_serve.over_stdio(parts.serve_stdio(wiki, _author(None)))

        def shown(taken: int) -> str:
            place = mcp_serve.shown_place(host, taken)
            return f"{wiki.folder.name} is served at http://{place}/mcp (and /sse); Ctrl-C ends it."

        mcp_serve.over_http(parts.serving(wiki, host, port, is_trusted=_is_trusted()), host, port, shown)


def _is_trusted() -> bool:
    return paths.server_file().exists() and Choices().load().config.trusted_network


def _wiki(project: str | None) -> Pages:
    """The wiki that is named, or of the team whose member or folder this is, or the only one."""
    wikis = sorted(each.name for each in (paths.home() / "wiki").glob("[!.]*") if Pages(each).exists)
    named = os.environ.get(Environment.WIKI)
    if project is None and named:
        folder = Path(named)
    elif (slug := project or _here()) is not None:
        folder = _of_team(slug) or folder_of(slug)
    elif len(wikis) == 1:
        folder = folder_of(wikis[0])
    else:
        there = f"there are {', '.join(wikis)}" if wikis else "there is none, `culture wiki init` makes one"
        fail(f"which wiki? Name it with --project: {there}", Exit.USAGE)
    wiki = Pages(folder)
    if not wiki.exists:
        known = folder.name if folder.parent == paths.home() / "wiki" else ""
        fail(f"{known or folder} has no wiki: `culture wiki init {known or 'SLUG'}` makes one")
    return wiki


def _here() -> str | None:
    """The team whose folder this is; None where there is none, or several."""
    from culture.cli.team.select_team import teams_of

    try:
        teams = teams_of(Path.cwd())
    except ConfigError:
        return None  # of a team whose file is broken
    return teams[0] if len(teams) == 1 else None


def _of_team(slug: str) -> Path | None:
    """Where a team has its wiki; None for a project that has no team."""
    from culture.cli.team.select_team import TEAM, known

    if slug not in known():
        return None
    config = load_team(paths.team_dir(slug) / TEAM).config
    if (folder := wiki_folder(config)) is None:
        fail(f"the wiki of {slug} is not on this machine: {config.wiki_mcp_url} serves it by MCP")
    return folder


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except (WikiRefused, NoSuchPage) as wrong:
        fail(str(wrong), Exit.USAGE if isinstance(wrong, WikiRefused) else Exit.FAILED)
    except WikiError as error:
        fail(str(error))


def _author(nick: str | None) -> str:
    """An agent writes as itself, a person as they say."""
    agent = own_agent()
    if agent == SOME_AGENT:
        fail(f"you are a process of an agent: {Environment.NICK} must say of which", Exit.DENIED)
    if agent and nick not in (None, agent):
        fail(f"you are {agent}, and write as nobody else", Exit.DENIED)
    return agent or nick or example_nick(Choices().load().config)


def _text(file: Path | None) -> str:
    try:
        data = file.read_bytes() if file and str(file) != "-" else sys.stdin.buffer.read()
        return data.decode()
    except OSError as error:
        fail(f"{file}: {error.strerror}", Exit.USAGE)
    except UnicodeDecodeError:
        fail("the text is not UTF-8", Exit.USAGE)


def _shown(conflict: Conflict) -> str:
    texts = (("base", conflict.base), ("current", conflict.current), ("yours", conflict.yours))
    return output.shown("\n".join(f"===== {name} =====\n{text or ''}" for name, text in texts))


def _moment(seconds: int) -> str:
    return shown_moment(seconds * MICROSECONDS)


def _print(found: list[dict[str, Any]], rows: Sequence[tuple[str, ...]], as_json: bool) -> None:
    if as_json:
        typer.echo(shown_json(found))
        return
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        typer.echo(output.shown("  ".join(map(str.ljust, row, widths)).rstrip()))
