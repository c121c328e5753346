"""What the commands of ``culture mesh`` share: the server that is meant, its links, and changing them."""

import json
import sys
from collections.abc import Callable, Collection
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from culture.cli.options import Choices
from culture.cli.output import fail
from culture.cli.server import pid_file
from culture.cli.server.running_server import as_running, certainly
from culture.config.links import LinkConfig
from culture.config.model import ServerConfig
from culture.config.values import Misfit
from culture.federation import book
from culture.federation.book import Book, Entries, UnreadableBook
from culture.protocol.names import fold, nearest, short_name
from culture.protocol.vocabulary import Exit

TAKEN_UP = 1.5
"""Seconds after which a running server has looked at its links again."""


class Trust(StrEnum):
    """How far the users behind a link are believed."""

    FULL = "full"
    NO_AUTHORITY = "no_authority"
    RESTRICTED = "restricted"


TrustOption = Annotated[
    Trust | None, typer.Option("--trust", help="How far the users of the other server are believed.  [default: full]")
]
AskedTrustOption = Annotated[
    Trust | None,
    typer.Option(
        "--trust", help="How far the users of the other server are believed; asked for at a terminal, else required."
    ),
]
CrossingChannels = Annotated[
    list[str] | None,
    typer.Option("--channel", metavar="CHANNEL", help="With --trust restricted: one that crosses; may be repeated."),
]

_CONSEQUENCE = {
    Trust.FULL: "its people count as people here, and may answer your agents and be operators of channels",
    Trust.NO_AUTHORITY: "its users are seen and talk here, and decide nothing",
    Trust.RESTRICTED: "its users are seen and talk in {channels} alone, and decide nothing",
}


def consequence(trust: str, channels: Collection[str], name: str) -> str:
    """What a trust means for the people here, and how to give less."""
    told = f"Trust {trust}: {_CONSEQUENCE[Trust(trust)].format(channels=', '.join(channels))}."
    if trust != Trust.FULL:
        return told
    later = f"culture mesh link {name or 'NAME'} --trust no_authority"
    return f"{told} For less, say --trust no_authority with this command, or at any time later `{later}`."


def ask_trust(trust: Trust | None, channels: list[str] | None, whose: str) -> Trust | None:
    """How far the users of a server are believed: as given, else as the person at the terminal says."""
    if trust is not None or channels:
        return trust
    if not sys.stdin.isatty():
        fail(
            f"say how far the users of {whose} are believed here: --trust full for a machine of yours, "
            "--trust no_authority for somebody else's, --trust restricted --channel '#name' for one room alone",
            Exit.USAGE,
        )
    typer.echo(f"How far are the users of {whose} believed here?", err=True)
    for each, what in _CONSEQUENCE.items():
        typer.echo(f"  {each:<13} {what.format(channels='the channels of --channel')}", err=True)
    while True:
        typer.echo(f"full is for a machine of yours. Trust [{Trust.NO_AUTHORITY}]: ", nl=False, err=True)
        answer = sys.stdin.readline()
        if not answer:
            fail("nothing was answered", Exit.USAGE)
        match answer.strip().lower() or Trust.NO_AUTHORITY:
            case Trust.FULL | Trust.NO_AUTHORITY as chosen:
                return Trust(chosen)
            case Trust.RESTRICTED:
                fail("type the command again with --trust restricted --channel '#name'", Exit.USAGE)
        typer.echo(f"One of {', '.join(Trust)}.", err=True)


def server_of(config: Path | None, name: str | None, data_dir: Path | None) -> ServerConfig:
    """The server that is meant, as it runs."""
    return as_running(certainly(Choices(config, name=name, data_dir=data_dir))).load().config


def settings_of(config: Path | None, name: str | None, data_dir: Path | None) -> ServerConfig:
    """The same, for its links."""
    settings = server_of(config, name, data_dir)
    if settings.nick_prefix != "required":
        fail("links need nick_prefix: required, since nicks are unique in the mesh by their prefix")
    return settings


def links_of(settings: ServerConfig) -> dict[str, LinkConfig]:
    """The links there shall be."""
    try:
        return book.merged(settings.links, Book(book.path_of(settings)).read())
    except UnreadableBook as error:
        fail(f"cannot be read: {error}")


def known(settings: ServerConfig, peer: str) -> LinkConfig:
    """The link to this one."""
    wanted = links_of(settings)
    link = wanted.get(short_name(fold(peer)))
    if link is None:
        close = nearest(peer, [each.name for each in wanted.values()])
        fail(f"there is no link to {peer}; {f'did you mean {close}?' if close else '`culture mesh list` shows them'}")
    return link


def with_link(entries: Entries, link: LinkConfig) -> Entries:
    """These, and this one."""
    return Entries({**entries.links, link.short_name: link}, entries.unlinked - {link.short_name})


def without(entries: Entries, name: str) -> Entries:
    """Also where culture.yaml has it: the command line has the last word."""
    links = {key: link for key, link in entries.links.items() if key != name}
    return Entries(links, entries.unlinked | {name})


def write(settings: ServerConfig, change: Callable[[Entries], Entries]) -> None:
    """Change what is written of the links."""

    def checked_entries(entries: Entries) -> Entries:
        changed = change(entries)
        book.check(settings, book.merged(settings.links, changed).values())
        return changed

    try:
        Book(book.path_of(settings)).change(checked_entries)
    except (UnreadableBook, OSError) as error:
        fail(f"cannot be changed: {error}")
    except Misfit as wrong:
        fail(f"{wrong.key[-1]}: {wrong}", Exit.USAGE)


def checked(said: dict[str, Any]) -> LinkConfig:
    """A link with these settings, if it can be one."""
    try:
        return LinkConfig.model_validate_json(
            json.dumps({key: value for key, value in said.items() if value is not None})
        )
    except ValidationError as error:
        # Never what was given: it may be the secret.
        wrong = [
            f"{'.'.join(map(str, each['loc'])) or 'link'}: {each['msg']}" for each in error.errors(include_input=False)
        ]
        fail("; ".join(wrong).replace("Value error, ", ""), Exit.USAGE)


def when(settings: ServerConfig) -> str:
    """From when on a change holds."""
    return "" if pid_file.running(settings.name) else f", once {settings.name} runs"


def believed(trust: Trust | None, channels: list[str] | None) -> dict[str, Any]:
    """What was said of trust; with any but restricted, channels that were named before are none any more."""
    is_open = trust is not None and trust is not Trust.RESTRICTED
    return {"trust": trust and trust.value, "channels": channels or ([] if is_open else None)}
