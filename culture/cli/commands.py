"""Which commands there are, and putting them together: all, or only the one that is about to run."""

from collections.abc import Iterable
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from culture import __version__
from culture.cli.agent_access import GuardedCommand, guarded

_AGENTS = "culture.cli.agents"
_SENTENCE = 200
COMMANDS = {
    "up": "culture.cli.up.command:up",
    "down": "culture.cli.up.down:down",
    "demo": "culture.cli.demo.command:demo",
    "start": f"{_AGENTS}.start:start",
    "stop": f"{_AGENTS}.stop:stop",
    "restart": f"{_AGENTS}.stop:restart",
    "status": f"{_AGENTS}.status:status",
    "pause": f"{_AGENTS}.pause:pause",
    "resume": f"{_AGENTS}.pause:resume",
    "logs": f"{_AGENTS}.logs:logs",
    "say": f"{_AGENTS}.talk:say",
    "read": f"{_AGENTS}.talk:read",
    "ask": f"{_AGENTS}.talk:ask",
    "who": f"{_AGENTS}.talk:who",
    "questions": f"{_AGENTS}.questions:questions",
    "answer": f"{_AGENTS}.questions:answer",
    "trace": f"{_AGENTS}.trace:trace",
    "digest": "culture.cli.digest:command",
    "agents": f"{_AGENTS}.agents:group",
    "backends": f"{_AGENTS}.backends:backends",
    "service": f"{_AGENTS}.service:group",
    "server": "culture.cli.server.command:group",
    "account": "culture.cli.account:group",
    "mesh": "culture.cli.mesh.command:group",
    "skills": "culture.cli.skills:group",
    "bridge": "culture.cli.bridge:group",
    "config": "culture.cli.config:group",
    "history": "culture.cli.history.command:group",
    "doctor": "culture.cli.doctor.command:doctor",
    "backup": "culture.cli.server.backup:backup",
    "restore": "culture.cli.server.backup:restore",
    "web": "culture.cli.web.command:group",
    "wiki": "culture.cli.wiki:group",
    "team": "culture.cli.team.group:group",
    "help": "culture.cli.help:help_",
    "completion": "culture.cli.completion.command:completion",
}


SECTIONS = {
    "Begin and end": ("up", "down", "demo", "doctor", "help"),
    "Agents": ("status", "start", "stop", "restart", "pause", "resume", "logs", "agents", "backends", "service"),
    "Talking": ("say", "read", "ask", "who", "questions", "answer", "trace", "digest"),
    "Teams, and what they know": ("team", "wiki", "skills", "bridge"),
    "The server": ("server", "web", "account", "mesh", "history", "backup", "restore", "config", "completion"),
}
"""The commands as they are listed, those of every day first."""


class Listing(TyperGroup):
    """A group that tells of each of its commands a whole sentence, however long."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write down the commands that there are."""
        self._write(formatter, "Commands", self.list_commands(ctx))

    def _write(self, formatter: Any, title: str, names: Iterable[str]) -> None:
        shown = {name: self.commands[name] for name in names if name in self.commands}
        rows = [(name, each.get_short_help_str(_SENTENCE)) for name, each in shown.items() if not each.hidden]
        if rows:
            with formatter.section(title):
                formatter.write_dl(rows)


class Root(Listing):
    """The outermost of the commands: says of what is missing what it is."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write down the commands, by what they are for."""
        for title, names in SECTIONS.items():
            self._write(formatter, title, names)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that is meant."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as wrong:
            # Of a missing argument it is known only that it is missing.
            if not wrong.message and wrong.param is not None:
                wrong.message = str(getattr(wrong.param, "help", None) or "").rstrip(".")
            raise


def assembled(word: str = "") -> typer.Typer:
    """The command line; with a command's name that one alone, as loading all of them takes longer than most need."""
    app = typer.Typer(
        name="culture",
        cls=Root,
        help="An IRC server where people and agents talk as equals.\n\nBegin with: culture up. Topics: culture help",
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    app.callback()(root)
    if word == "--version":
        return app
    for name, place in COMMANDS.items():
        if word in (name, "") or word not in COMMANDS:
            _add(app, name, place)
    return app


def _add(app: typer.Typer, name: str, place: str) -> None:
    module, _, attribute = place.partition(":")
    found = getattr(import_module(module), attribute)
    if isinstance(found, typer.Typer):
        app.add_typer(guarded(found), name=name, cls=Listing)
    else:
        app.command(name, cls=GuardedCommand)(found)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"culture {__version__}")
        raise typer.Exit


def root(
    _version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """An IRC server where people and agents talk as equals.

    Begin with: culture up. Topics: culture help
    """
