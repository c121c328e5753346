"""``culture mesh``: the links of this server to others, also while it runs."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from culture.cli import links, pidfile
from culture.cli.choices import Choices, ConfigFile, DataDir, Name
from culture.cli.failing import fail
from culture.cli.living import as_running
from culture.cli.secret import link_secret
from culture.config.links import Link
from culture.config.model import ServerConfig
from culture.config.values import Misfit
from culture.federation import book
from culture.federation.book import Book, Entries, UnreadableBook
from culture.protocol.names import fold, nearest, short_name
from culture.protocol.vocabulary import Exit

group = typer.Typer(help="Link this server to others.", no_args_is_help=True)


class Trust(StrEnum):
    """How far the users behind a link are believed."""

    FULL = "full"
    NO_AUTHORITY = "no_authority"
    RESTRICTED = "restricted"


Peer = Annotated[str, typer.Argument(metavar="NAME", show_default=False, help="The other server, for example thor.")]
SecretFile = Annotated[
    Path | None, typer.Option("--secret-file", metavar="FILE", help="The secret is the first line of this file.")
]
SecretStdin = Annotated[
    bool, typer.Option("--secret-stdin", help="Read the secret from standard input, do not ask for it.")
]
NewSecret = Annotated[
    Path | None,
    typer.Option("--new-secret", metavar="FILE", help="Make a secret and put it into this file, for the other side."),
]


@group.command("list")
def show(
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
    config: ConfigFile = None,
    name: Name = None,
    data_dir: DataDir = None,
) -> None:
    """Show the links, and how each is."""
    settings = _settings(config, name, data_dir)
    wanted = _links(settings)
    figures = {each["name"]: each for each in links.figures(settings)}
    rows = [figures.get(link.name, links.at_rest(link)) for link in wanted.values()]
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
    elif not rows:
        typer.echo("There are no links. Make one with `culture mesh link NAME ADDRESS`.")
    else:
        for row in rows:
            typer.echo(links.described(row))


@group.command("link")
def make(
    peer: Peer,
    address: Annotated[
        str | None,
        typer.Argument(
            metavar="[ADDRESS]", show_default=False, help="host:port to dial; without one it is waited for."
        ),
    ] = None,
    secret_file: SecretFile = None,
    secret_stdin: SecretStdin = False,
    new_secret: NewSecret = None,
    fingerprint: Annotated[
        str | None, typer.Option("--fingerprint", metavar="SHA256", help="Of the other server's certificate.")
    ] = None,
    tls: Annotated[
        bool | None, typer.Option("--tls/--no-tls", help="Speak TLS.  [default: beyond this machine]")
    ] = None,
    trust: Annotated[Trust, typer.Option("--trust", help="How far its users are believed.")] = Trust.FULL,
    channel: Annotated[
        list[str] | None,
        typer.Option(
            "--channel", metavar="CHANNEL", help="With --trust restricted: one that crosses; may be repeated."
        ),
    ] = None,
    config: ConfigFile = None,
    name: Name = None,
    data_dir: DataDir = None,
) -> None:
    """Link this server to another, or change such a link.

    A running server takes it up within a second. The secret is asked for, or
    read from a file or standard input; it is never an argument, as others can
    see those.
    """
    settings = _settings(config, name, data_dir)
    secret = link_secret(peer, secret_file, secret_stdin, new_secret)
    said = {"name": peer, "address": address, "secret": secret, "fingerprint": fingerprint, "tls": tls}
    wanted = _checked({**said, "trust": trust.value, "channels": channel or []})
    _write(settings, lambda entries: _with(entries, wanted))
    how = f"at {address}" if address else "when it comes"
    typer.echo(f"{wanted.name} is linked {how}{_when(settings)}; `culture mesh list` shows how it goes.")


@group.command()
def unlink(peer: Peer, config: ConfigFile = None, name: Name = None, data_dir: DataDir = None) -> None:
    """Take a link away: a running server ends it within a second, and lets that one in no more."""
    settings = _settings(config, name, data_dir)
    link = _known(settings, peer)
    _write(settings, lambda entries: _without(entries, link.short_name))
    typer.echo(f"{link.name} is not linked any more{_when(settings)}.")


@group.command()
def rotate(
    peer: Peer,
    secret_file: SecretFile = None,
    secret_stdin: SecretStdin = False,
    new_secret: NewSecret = None,
    finish: Annotated[
        bool, typer.Option("--finish", help="Both sides have the new secret: forget the old one.")
    ] = False,
    config: ConfigFile = None,
    name: Name = None,
    data_dir: DataDir = None,
) -> None:
    """Change a link's secret without interrupting it.

    First on both sides with the new secret: until then the old one is good
    too. Then on both sides with --finish.
    """
    settings = _settings(config, name, data_dir)
    link = _known(settings, peer)
    if finish:
        wanted = link.model_copy(update={"old_secret": None})
    else:
        secret = link_secret(peer, secret_file, secret_stdin, new_secret)
        wanted = _checked({**link.model_dump(mode="json"), "secret": secret, "old_secret": link.secret})
    _write(settings, lambda entries: _with(entries, wanted))
    after = "only its present secret is good" if finish else "the new secret and the old one are good"
    typer.echo(f"{link.name}: {after}{_when(settings)}.")


def _settings(config: Path | None, name: str | None, data_dir: Path | None) -> ServerConfig:
    """Of the server that is meant, as it runs."""
    settings = as_running(Choices(config, name=name, data_dir=data_dir)).load().config
    if settings.nick_prefix != "required":
        fail("links need nick_prefix: required, since nicks are unique in the mesh by their prefix")
    return settings


def _links(settings: ServerConfig) -> dict[str, Link]:
    try:
        return book.merged(settings.links, Book(book.path_of(settings)).read())
    except UnreadableBook as error:
        fail(f"cannot be read: {error}")


def _known(settings: ServerConfig, peer: str) -> Link:
    wanted = _links(settings)
    link = wanted.get(short_name(fold(peer)))
    if link is None:
        close = nearest(peer, [each.name for each in wanted.values()])
        fail(f"there is no link to {peer}{f'; did you mean {close}?' if close else ''}")
    return link


def _with(entries: Entries, link: Link) -> Entries:
    return Entries({**entries.links, link.short_name: link}, entries.unlinked - {link.short_name})


def _without(entries: Entries, name: str) -> Entries:
    """Also where culture.yaml has it: the command line has the last word."""
    links = {key: link for key, link in entries.links.items() if key != name}
    return Entries(links, entries.unlinked | {name})


def _write(settings: ServerConfig, change: Any) -> None:
    def checked(entries: Entries) -> Entries:
        changed: Entries = change(entries)
        book.check(settings, book.merged(settings.links, changed).values())
        return changed

    try:
        Book(book.path_of(settings)).change(checked)
    except (UnreadableBook, OSError) as error:
        fail(f"cannot be changed: {error}")
    except Misfit as wrong:
        fail(f"{wrong.key[-1]}: {wrong}", Exit.USAGE)


def _checked(said: dict[str, Any]) -> Link:
    try:
        return Link.model_validate_json(json.dumps({key: value for key, value in said.items() if value is not None}))
    except ValidationError as error:
        # Never what was given: it may be the secret.
        wrong = [
            f"{'.'.join(map(str, each['loc'])) or 'link'}: {each['msg']}" for each in error.errors(include_input=False)
        ]
        fail("; ".join(wrong).replace("Value error, ", ""), Exit.USAGE)


def _when(settings: ServerConfig) -> str:
    return "" if pidfile.running(settings.name) else " once the server runs"
