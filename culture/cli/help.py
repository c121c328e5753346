"""``culture help``: short pages on topics (topics/*.txt), and the usage of any command."""

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from culture.cli.agent_access import open_to_agents
from culture.cli.commands import COMMANDS, assembled
from culture.cli.output import fail
from culture.config.installation import installation
from culture.protocol.names import nearest
from culture.protocol.vocabulary import Exit


@open_to_agents
def help_(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="TOPIC|COMMAND", help="Topic or command; without it, list the topics.")
    ] = None,
) -> None:
    """Explain a topic or a command; without an argument, list the topics."""
    if not words:
        typer.echo(_topic_list())
    elif len(words) == 1 and words[0] in TITLES:
        typer.echo(page(words[0]), nl=False)
        if words[0] == "install":
            typer.echo(_this_copy())
        if words[0] in COMMANDS:
            typer.echo(f"\nUsage of the command: culture {words[0]} --help")
    elif words[0] in COMMANDS:
        typer.echo(_usage(words))
    else:
        words_known = [*TITLES, *COMMANDS]
        near = nearest(words[0], words_known)
        hint = f"did you mean `culture help {near}`?" if near else "`culture help` lists the topics"
        fail(f"there is no topic or command {words[0]!r}; {hint}", Exit.USAGE)


def _topic_list() -> str:
    width = max(map(len, TITLES))
    rows = [f"  {topic:<{width}}  {title}" for topic, title in TITLES.items()]
    return "\n".join(
        [
            "culture help TOPIC explains:",
            "",
            *rows,
            "",
            "culture help COMMAND, or culture COMMAND --help, shows the usage of a command.",
            "culture --help lists all commands.",
        ]
    )


def _this_copy() -> str:
    """Return the shell commands that upgrade this installation, and that add optional packages."""
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
    usage: str = command.get_help(context)
    return usage


_ORDER = (
    "start",
    "rooms",
    "questions",
    "search",
    "budget",
    "loops",
    "mesh",
    "web",
    "team",
    "security",
    "files",
    "trouble",
    "install",
    "exit-codes",
    "completion",
)
_FOLDER = Path(__file__).parent / "topics"


def page(topic: str) -> str:
    """Return the text of the help page on a topic."""
    return (_FOLDER / f"{topic}.txt").read_text(encoding="utf-8")


TITLES = {topic: page(topic).partition("\n")[0] for topic in _ORDER}
"""Topic → title (the first line of its page), in reading order."""
