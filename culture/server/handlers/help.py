"""HELP and HELPOP: the docstring of a verb's handler is its help text."""

import inspect
from collections.abc import Iterator

from culture.protocol.caps import lines
from culture.protocol.message import Message
from culture.protocol.names import nearest
from culture.protocol.numerics import Numeric
from culture.server.commands import Command, command
from culture.server.context import Context
from culture.server.core.visibility import hinted
from culture.server.errors import Refused

_ROOM = 380  # bytes of a line for the text
_INDEX = "index"
_WELCOME = "The verbs of this server; HELP verb explains one:"


@command("HELP")
def on_help(ctx: Context, message: Message) -> None:
    """``HELP [verb]``: explain a verb; alone: list the verbs."""
    commands, subject = ctx.parts.commands, message.params[0] if message.params else ""
    if not subject or subject.lower() == _INDEX:
        ctx.pull(_page(ctx, _INDEX, [_WELCOME, *lines(sorted(commands), _ROOM)]))
    elif subject.upper() in commands:
        ctx.pull(_page(ctx, subject, explain(commands[subject.upper()])))
    else:
        suggestion = nearest(subject.upper(), commands)
        raise Refused(Numeric.ERR_HELPNOTFOUND, subject, text=hinted(Numeric.ERR_HELPNOTFOUND.text, suggestion))


@command("HELPOP")
def on_helpop(ctx: Context, message: Message) -> None:
    """``HELPOP [verb]``: the same as HELP."""
    on_help(ctx, message)


def _page(ctx: Context, subject: str, text: list[str]) -> Iterator[Message]:
    yield ctx.numeric(Numeric.RPL_HELPSTART, subject, text=text[0])
    for line in text[1:]:
        yield ctx.numeric(Numeric.RPL_HELPTXT, subject, text=line)
    yield ctx.numeric(Numeric.RPL_ENDOFHELP, subject)


def explain(verb: Command) -> list[str]:
    """Return the help text of a command as lines: its syntax, then what it does."""
    text = inspect.getdoc(verb.handler) or verb.verb
    usage, colon, rest = text.replace("``: ", "\0", 1).replace("``", "").partition("\0")
    paragraphs = [usage, rest] if colon else [usage]
    return [line for paragraph in "\n\n".join(paragraphs).split("\n\n") for line in lines(paragraph.split(), _ROOM)]
