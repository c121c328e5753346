"""The table of commands; builds the command line with all of them, or only the typed one."""

from collections.abc import Iterable
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from culture import __version__
from culture.cli.agent_access import GuardedCommand, guard_group

_AGENTS = "culture.cli.agents"
_SENTENCE = 200
COMMANDS = {
    "up": "culture.cli.up.command:up",
    "down": "culture.cli.up.command:down",
    "demo": "culture.cli.demo.command:demo",
    "start": f"{_AGENTS}.lifecycle:start",
    "stop": f"{_AGENTS}.lifecycle:stop",
    "restart": f"{_AGENTS}.lifecycle:restart",
    "status": f"{_AGENTS}.status:status",
    "pause": f"{_AGENTS}.lifecycle:pause",
    "resume": f"{_AGENTS}.lifecycle:resume",
    "logs": f"{_AGENTS}.status:logs",
    "say": f"{_AGENTS}.talk:say",
    "read": f"{_AGENTS}.talk:read",
    "ask": f"{_AGENTS}.talk:ask",
    "who": f"{_AGENTS}.talk:who",
    "questions": f"{_AGENTS}.questions:questions",
    "answer": f"{_AGENTS}.questions:answer",
    "trace": f"{_AGENTS}.trace:trace",
    "digest": "culture.cli.digest:digest_command",
    "agents": f"{_AGENTS}.agents:group",
    "backends": f"{_AGENTS}.agents:backends",
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
    "team": "culture.cli.team.command:group",
    "help": "culture.cli.help:help_",
    "completion": "culture.cli.completion:completion",
}


SECTIONS = {
    "Start and stop": ("up", "down", "demo", "doctor", "help"),
    "Agents": ("status", "start", "stop", "restart", "pause", "resume", "logs", "agents", "backends", "service"),
    "Messages": ("say", "read", "ask", "who", "questions", "answer", "trace", "digest"),
    "Teams and knowledge": ("team", "wiki", "skills", "bridge"),
    "Server": ("server", "web", "account", "mesh", "history", "backup", "restore", "config", "completion"),
}
"""Headings of `culture --help` and the commands below each, the most used first."""

TOPICS = {
    "up": "start",
    "status": "trouble",
    "agents": "start",
    "questions": "questions",
    "answer": "questions",
    "server": "files",
    "web": "web",
    "account": "security",
    "mesh": "mesh",
    "history": "search",
    "config": "files",
    "team": "team",
}
"""The help topic that shows how a command is used; the help of the command ends with it."""


class Listing(TyperGroup):
    """A command group whose help shows the whole first sentence of each command."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of this group's commands into its help.

        ``ctx``: Click's context of the group. ``formatter``: Click's formatter, to which the text is written.
        """
        self._write(formatter, "Commands", self.list_commands(ctx))

    def _write(self, formatter: Any, title: str, names: Iterable[str]) -> None:
        listed = {name: self.commands[name] for name in names if name in self.commands}
        rows = [(name, each.get_short_help_str(_SENTENCE)) for name, each in listed.items() if not each.hidden]
        if rows:
            with formatter.section(title):
                formatter.write_dl(rows)


class Root(Listing):
    """The command group `culture`; its error for a missing argument shows that argument's help."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands into the help of `culture`, under the headings of SECTIONS.

        ``ctx``: Click's context of the group. ``formatter``: Click's formatter, to which the text is written.
        """
        for title, names in SECTIONS.items():
            self._write(formatter, title, names)

    def invoke(self, ctx: Any) -> Any:
        """Run the typed command; a missing argument's error message is that argument's help text.

        ``ctx``: Click's context of the group.
        """
        try:
            return super().invoke(ctx)
        except typer.BadParameter as wrong:
            # Click gives a missing argument no message.
            if not wrong.message and wrong.param is not None:
                wrong.message = str(getattr(wrong.param, "help", None) or "").rstrip(".")
            raise


def assembled(word: str = "") -> typer.Typer:
    """Build the command line with the command ``word`` only, or with all if no command has it."""
    app = typer.Typer(
        name="culture",
        cls=Root,
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
    command = getattr(import_module(module), attribute)
    epilog = f"Examples: culture help {TOPICS[name]}" if name in TOPICS else None
    if isinstance(command, typer.Typer):
        app.add_typer(guard_group(command), name=name, cls=Listing, epilog=epilog)
    else:
        app.command(name, cls=GuardedCommand, epilog=epilog)(command)


def _show_version(is_given: bool) -> None:
    if is_given:
        typer.echo(f"culture {__version__}")
        raise typer.Exit


def root(
    _version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Chat rooms for people and AI coding agents, over IRC.

    Start with: culture up. Help topics: culture help
    """
