"""``culture help``: short pages on topics, and what any command takes."""

import shlex
from typing import Annotated, Any

import typer

from culture.cli import topics
from culture.cli.agent_access import open_to_agents
from culture.cli.commands import COMMANDS, assembled
from culture.cli.output import fail
from culture.config.installation import installation
from culture.protocol.names import nearest
from culture.protocol.vocabulary import Exit


@open_to_agents
def help_(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="TOPIC|COMMAND", help="What about; without it, what there is.")
    ] = None,
) -> None:
    """Explain a topic or a command; without one, list the topics."""
    if not words:
        typer.echo(_listed())
    elif len(words) == 1 and words[0] in topics.TITLES:
        typer.echo(topics.text(words[0]), nl=False)
        if words[0] == "install":
            typer.echo(_this_copy())
        if words[0] in COMMANDS:
            typer.echo(f"\nWhat the command takes: culture {words[0]} --help")
    elif words[0] in COMMANDS:
        typer.echo(_usage(words))
    else:
        known = [*topics.TITLES, *COMMANDS]
        near = nearest(words[0], known)
        hint = f"did you mean `culture help {near}`?" if near else "`culture help` lists the topics"
        fail(f"there is no topic and no command {words[0]!r}; {hint}", Exit.USAGE)


def _listed() -> str:
    width = max(map(len, topics.TITLES))
    rows = [f"  {topic:<{width}}  {title}" for topic, title in topics.TITLES.items()]
    return "\n".join(
        [
            "culture help TOPIC explains:",
            "",
            *rows,
            "",
            "culture help COMMAND, or culture COMMAND --help, tells what a command takes; culture --help lists them.",
        ]
    )


def _this_copy() -> str:
    """The commands for the copy that runs."""
    copy = installation()
    is_clone = copy.checkout is not None and (copy.checkout / ".git").exists()
    fetch = f"{shlex.join(('git', '-C', str(copy.checkout), 'pull'))} && " if is_clone else ""
    return "\n".join(
        [
            f"  add an extra, such as bridge:  {copy.extend('bridge')}",
            f"  upgrade:                       {fetch}{copy.upgrade()}",
        ]
    )


def _usage(words: list[str]) -> str:
    command: Any = typer.main.get_command(assembled(words[0]))
    context = command.make_context("culture", [], resilient_parsing=True)
    for number, word in enumerate(words):
        inner = getattr(command, "commands", {})
        if word not in inner:
            path = " ".join(["culture", *words[:number]])
            near = nearest(word, list(inner))
            hint = f"did you mean `culture help {' '.join([*words[:number], near])}`?" if near else f"{path} --help"
            fail(f"{path} has no command {word!r}; {hint}", Exit.USAGE)
        command = inner[word]
        context = command.make_context(word, [], parent=context, resilient_parsing=True)
    shown: str = command.get_help(context)
    return shown
