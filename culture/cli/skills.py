"""``culture skills``: installs the IRC instructions for the programs of agents."""

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from culture.cli.agent_access import open_to_agents
from culture.cli.options import AsJson
from culture.cli.output import as_json as in_json
from culture.cli.output import fail
from culture.clients.claude import hooks
from culture.clients.shared.backends import NoBackend, backend, installed
from culture.clients.shared.turn import Backend
from culture.lib.files import replace_file
from culture.protocol.vocabulary import Exit

group = typer.Typer(help="Teach agents' programs to use IRC.", no_args_is_help=True)

SKILL = "irc"
PAGE = "SKILL.md"
MISSING = "not installed"
LOADED = "at its start"
"""State of a skill that the program gets whenever an agent starts."""
_READABLE = 0o644

Home = Annotated[
    Path | None, typer.Option("--home", metavar="FOLDER", help="Home folder of the agent, if it is not yours.")
]


@group.command()
def install(
    name: Annotated[str, typer.Argument(metavar="BACKEND", help="Kind of agent, for example claude.")],
    home: Home = None,
    with_hooks: Annotated[
        bool, typer.Option("--hooks", help="Let the supervisor see a Claude Code that you start by hand.")
    ] = False,
) -> None:
    """Install the IRC instructions where the agent's program looks for them.

    Run it again after an update; files that did not change are left alone.
    """
    try:
        kind = backend(name)
    except NoBackend as unknown:
        fail(str(unknown), Exit.USAGE)
    contents = skill_files(kind)
    if not contents:
        fail(f"{name} needs no IRC instructions")
    for folder in folders(kind, home):
        for file, content in contents.items():
            try:
                done = _put(folder / file, content)
            except OSError as error:
                fail(f"{folder / file}: {error.strerror}")
            typer.echo(f"{done:<9}  {folder / file}")
    if with_hooks:
        _install_hooks(name, home)


def _install_hooks(name: str, home: Path | None) -> None:
    if name != "claude":
        fail(f"{name} has no hooks: only claude has", Exit.USAGE)
    file = (home or Path.home()).expanduser().absolute() / hooks.SETTINGS
    before = _content(file)
    try:
        text = hooks.added(before.decode() if before is not None else None)
        typer.echo(f"{_put(file, text.encode()):<9}  {file}")
    except (hooks.WrongSettings, UnicodeDecodeError) as wrong:
        fail(f"{file}: {wrong}")
    except OSError as error:
        fail(f"{file}: {error.strerror}")


@group.command("list")
@open_to_agents
def list_skills(home: Home = None, as_json: AsJson = False) -> None:
    """List the kinds of agents, and whether their IRC instructions are installed."""
    rows = [row for name, kind in sorted(installed().items()) for row in _rows(name, kind, home)]
    if as_json:
        typer.echo(
            in_json([{"backend": name, "state": state, "folder": folder or None} for name, state, folder in rows])
        )
        return
    for name, state, folder in rows:
        typer.echo(f"{name:<10}  {state:<13}  {folder}".rstrip())


def _rows(name: str, kind: Backend, home: Path | None) -> Iterator[tuple[str, str, str]]:
    contents = skill_files(kind)
    if not contents:
        yield name, "needs none", ""
        return
    states = {folder: _state(folder, contents) for folder in folders(kind, home)}
    # An installed skill wins; then none is loaded at the start.
    is_loaded = kind.loads_skill and set(states.values()) == {MISSING}
    for folder, state in states.items():
        yield name, LOADED if is_loaded else state, str(folder)


def folders(kind: Backend, home: Path | None = None) -> Iterator[Path]:
    """Yield the folders in which the IRC instructions of a backend are installed.

    ``home``: the user's home folder, by default that of the current user.
    """
    for folder in kind.skill_folders:
        yield (home or Path.home()).expanduser().absolute() / folder / SKILL


def has_skill(kind: Backend, home: Path) -> bool:
    """Whether a user's home folder has the IRC instructions of a backend, of any version.

    True also if the backend needs none, or loads them itself.
    """
    contents = skill_files(kind)
    return not contents or kind.loads_skill or any((folder / PAGE).exists() for folder in folders(kind, home))


def has_other_skill(kind: Backend, home: Path) -> bool:
    """Whether a home folder has IRC instructions that no installed backend has in this version.

    Several backends share a folder, which holds the instructions of the backend that was installed last.
    """
    pages = {None, *(skill_files(each).get(PAGE) for each in installed().values())}
    return bool(skill_files(kind)) and any(_content(folder / PAGE) not in pages for folder in folders(kind, home))


def skill_files(kind: Backend) -> dict[str, bytes]:
    """Return the files of a backend's IRC instructions, by name; empty if it has none."""
    if not kind.skill or not kind.skill_folders:
        return {}
    folder = files(kind.skill) / "skill"
    if not folder.is_dir():
        return {}
    return {
        entry.name: entry.read_bytes()
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)
        if entry.is_file() and entry.name.endswith((".md", ".py")) and entry.name != "__init__.py"
    }


def _state(folder: Path, contents: dict[str, bytes]) -> str:
    if not folder.is_dir():
        return MISSING
    same = all(_content(folder / file) == content for file, content in contents.items())
    return "installed" if same else "differs"


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _put(path: Path, content: bytes) -> str:
    before = _content(path)
    if before == content:
        return "unchanged"
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, content, mode=_READABLE)
    return "written" if before is None else "updated"
