"""``culture mesh invite``: one line with which another machine, or a person, comes in once."""

import shlex
import socket
import time
from importlib import import_module
from typing import Annotated
from urllib.parse import quote

import typer

from culture.cli.humanize import duration
from culture.cli.mesh.common import (
    TAKEN_UP,
    AskedTrustOption,
    CrossingChannels,
    ask_trust,
    believed,
    checked,
    consequence,
    links_of,
    server_of,
    settings_of,
)
from culture.cli.mesh.invite_code import InviteCode
from culture.cli.options import AsJson, ConfigFile, DataDir, Name
from culture.cli.output import as_json as in_json
from culture.cli.output import fail
from culture.cli.server import certificate, pid_file
from culture.config.links import endpoint
from culture.config.listen_policy import is_loopback
from culture.config.model import Listen, ServerConfig
from culture.federation import book
from culture.federation.book import Book
from culture.protocol.names import fold, short_name
from culture.protocol.vocabulary import Exit
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import AccountRefused, account_name
from culture.server.auth.invitations import (
    Invitation,
    Invitations,
    NotInvited,
    UnreadableInvitations,
    digest_of,
    new_key,
    path_of,
)

_EVERYWHERE = {"0.0.0.0", "::", ""}
_ANYWHERE = ("192.0.2.1", 9)
"""An address of nobody (RFC 5737): the system says from where it would be reached, and nothing is sent."""

Expires = Annotated[str, typer.Option("--expires", metavar="TIME", help="How long it is good for: 10m, 1h, 2d.")]


def invite(
    peer: Annotated[
        str | None,
        typer.Argument(metavar="NAME", show_default=False, help="The only server it is for; else for any, once."),
    ] = None,
    person: Annotated[
        str | None, typer.Option("--person", metavar="NAME", help="Invite a person instead: their account's name.")
    ] = None,
    address: Annotated[
        str | None,
        typer.Option("--address", metavar="HOST:PORT", help="Where others reach this server.  [default: its listener]"),
    ] = None,
    expires: Expires = "1h",
    trust: AskedTrustOption = None,
    channel: CrossingChannels = None,
    config: ConfigFile = None,
    name: Name = None,
    data_dir: DataDir = None,
) -> None:
    """Invite a machine, or with --person somebody: prints the line to type there.

    The code in it has this server's address, the fingerprint of its
    certificate and a key that is good once, until it expires. Give it to one
    person, over a channel you trust: whoever has it comes in.
    """
    settings = settings_of(config, name, data_dir) if person is None else server_of(config, name, data_dir)
    if person is not None:
        _check_person(settings, person, [peer, trust, channel])
    said = believed(trust, channel)
    if person is None:
        _check_machine(settings, peer, said)
    door, place = _reached(settings, address)
    seconds = _seconds(expires)
    if person is None:
        said = believed(ask_trust(trust, channel, peer or "the machine that comes in"), channel)
    key, now = new_key(), time.time()
    made = Invitation(
        kind="machine" if person is None else "person",
        digest=digest_of(key),
        expires=now + seconds,
        name=person or peer or "",
        trust=said.get("trust") or "full",
        channels=tuple(said.get("channels") or ()),
    )
    try:
        Invitations(path_of(settings)).add(made, now)
    except (NotInvited, UnreadableInvitations, OSError) as error:
        fail(f"nobody can be invited: {error}")
    if person is None:
        _be_ready(settings)
    shown = certificate.of(door.tls.certificate) if door.tls is not None else None
    code = InviteCode(made.kind, settings.name, place, shown or "", made.name, key)
    typer.echo(f"culture mesh join {code}")
    if person is not None:
        _tell_page(settings, person, key)
    typer.echo(_remarks(settings, made, place, expires), err=True)


def invites(
    as_json: AsJson = False,
    config: ConfigFile = None,
    name: Name = None,
    data_dir: DataDir = None,
) -> None:
    """Show the invitations that are open."""
    rows = [_row(each) for each in _open(server_of(config, name, data_dir))]
    if as_json:
        typer.echo(in_json(rows))
    elif not rows:
        typer.echo("No invitation is open. Make one with `culture mesh invite`.")
    else:
        for row in rows:
            trust = f", trust {row['trust']}" if row["trust"] else ""
            left = f"{_left(row['expires'])} left{trust}"
            typer.echo(f"{row['id']}  {row['kind']:<7}  {row['name'] or 'any':<16}  {left}")


def uninvite(
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="ID", show_default=False, help="As `culture mesh invites` shows it.")
    ] = None,
    everyone: Annotated[bool, typer.Option("--all", help="Every open invitation.")] = False,
    config: ConfigFile = None,
    name: Name = None,
    data_dir: DataDir = None,
) -> None:
    """Take invitations back: nobody comes in with them any more."""
    settings = server_of(config, name, data_dir)
    known = {each.id for each in _open(settings)}
    wanted = known if everyone else set(ids or ())
    if not wanted and not everyone:
        fail("say which: `culture mesh invites` lists them; or --all", Exit.USAGE)
    if wanted - known:
        fail(f"no open invitation is called {' or '.join(sorted(wanted - known))}; `culture mesh invites` lists them")
    closed = Invitations(path_of(settings)).take_back(frozenset(wanted), time.time())
    typer.echo(f"{closed} {'invitation is' if closed == 1 else 'invitations are'} taken back.")


def _open(settings: ServerConfig) -> list[Invitation]:
    try:
        return [each for each in Invitations(path_of(settings)).all() if each.is_open(time.time())]
    except (UnreadableInvitations, OSError) as error:
        fail(f"cannot be read: {error}")


def _row(invitation: Invitation) -> dict[str, object]:
    return {
        "id": invitation.id,
        "kind": invitation.kind,
        "name": invitation.name or None,
        "expires": invitation.expires,
        "trust": invitation.trust if invitation.kind == "machine" else None,
        "channels": list(invitation.channels),
    }


def _left(expires: object) -> str:
    assert isinstance(expires, float)
    minutes = max(1, round((expires - time.time()) / 60))
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h"


def _seconds(text: str) -> float:
    try:
        return duration(text)
    except ValueError as error:
        fail(f"--expires: {error}", Exit.USAGE)


def _check_machine(settings: ServerConfig, peer: str | None, said: dict[str, object]) -> None:
    """What cannot become a link is told here, and not on the other machine."""
    checked({"name": peer or "anybody", "secret": "x" * 32, **said})
    if peer is not None and short_name(fold(peer)) in links_of(settings):
        fail(f"{peer} is linked already; `culture mesh unlink {peer}` takes that link away")
    if peer is not None and short_name(fold(peer)) == settings.short_name:
        fail(f"{peer} is this server itself")


def _check_person(settings: ServerConfig, person: str, others: list[object]) -> None:
    if any(others):
        fail(
            "--person invites somebody with an account here: no NAME of a server, no --trust, no --channel", Exit.USAGE
        )
    try:
        account_name(person)
    except AccountRefused as refused:
        fail(str(refused), Exit.USAGE)
    owner = AccountStore(settings.accounts_file, settings.account_prefix).owner_of(person)
    if owner is not None:
        fail(f"{person} has an account already; `culture account passwd {owner.name}` gives it another password")


def _be_ready(settings: ServerConfig) -> None:
    """A server without links looks for a book of them; it may take a second to see this one."""
    path = book.path_of(settings)
    if path.exists():
        return
    Book(path).change(lambda entries: entries)
    if pid_file.running(settings.name):
        time.sleep(TAKEN_UP)


def _reached(settings: ServerConfig, address: str | None) -> tuple[Listen, str]:
    """The listener by which they come in, and its address as others know it."""
    doors = _doors(settings)
    encrypted = sorted((each for each in doors if each[0].tls is not None), key=lambda each: is_loopback(each[0].host))
    if address is not None:
        try:
            host, _ = endpoint(address)
        except ValueError as error:
            fail(f"--address: {error}", Exit.USAGE)
        if encrypted or is_loopback(host) or settings.trusted_network:
            return (encrypted or doors)[0][0], address
        fail(f"{settings.name} has no listener with TLS, so nobody comes in from another machine.\n{_how(host)}")
    if not doors:
        fail(f"{settings.name} listens for nobody")
    door, port = (encrypted or doors)[0]
    if not port:
        fail(f"{settings.name} takes any free port and does not run: start it first, or give --address", Exit.USAGE)
    host = _outward() if door.host in _EVERYWHERE and door.tls is not None else door.host
    return door, f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _doors(settings: ServerConfig) -> list[tuple[Listen, int]]:
    note = pid_file.running(settings.name)
    ports = [port for _, port in note.addresses] if note and note.addresses else [each.port for each in settings.listen]
    pairs = zip(settings.listen, ports, strict=False)
    return [(listener, port) for listener, port in pairs if listener.websocket is None]


def _outward() -> str:
    """By which address this machine reaches others, as far as it knows."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_ANYWHERE)
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"


def _how(host: str) -> str:
    """What to type for a listener that others reach."""
    return (
        f"Type `culture server cert --name {shlex.quote(host)}`, put the lines it prints into culture.yaml, "
        "`culture server restart`, and invite again."
    )


def _tell_page(settings: ServerConfig, person: str, key: str) -> None:
    """Where the web page is shown, the same is a link for a browser."""
    # What the page is made of takes long to load, and no other invitation needs it.
    note = import_module("culture.cli.web.process").running(settings.name)
    if note is not None and note.url:
        typer.echo(f"Or in a browser: {note.url}/login/invited/{quote(person, safe='')}/{key}", err=True)


def _remarks(settings: ServerConfig, made: Invitation, place: str, expires: str) -> str:
    whom = f"{made.name} types it" if made.name else "Type it on the other machine"
    lines = [
        f"{whom}, within {expires}; it is good once. It may also be read from standard input: culture mesh join -",
        f"`culture mesh uninvite {made.id}` takes it back.",
    ]
    if made.kind == "machine":
        lines.append(consequence(made.trust, made.channels, made.name))
        lines.append(
            f"The link can be taken away at any time, on either side: `culture mesh unlink {made.name or 'NAME'}`."
        )
    else:
        lines.append(f"The account can be taken away at any time: `culture account revoke {made.name}`.")
    if not pid_file.running(settings.name):
        lines.append(f"{settings.name} does not run: `culture server start`, as it has to let them in.")
    if is_loopback(endpoint(place)[0]):
        lines.append(
            f"It leads to {place}, which is this machine alone. For others: --address HOST:PORT. {_how('HOST')}"
        )
    else:
        lines.append(f"It leads to {place}; if others reach this machine otherwise, say so with --address.")
    return "\n".join(lines)
