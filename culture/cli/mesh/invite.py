"""``culture mesh invite``: one-time codes that let another server link, or a person join."""

import base64
import shlex
import socket
import time
from dataclasses import astuple, dataclass, field, fields
from hashlib import sha256
from importlib import import_module
from typing import Annotated
from urllib.parse import quote

import typer

from culture.cli.humanize import parse_age
from culture.cli.mesh.links import (
    TAKEN_UP,
    AskedTrustOption,
    CrossingChannels,
    ask_trust,
    describe_trust,
    link_config,
    links_of,
    server_of,
    settings_of,
    trust_settings,
)
from culture.cli.options import AsJson, ConfigFile, DataDir, Name
from culture.cli.output import as_json as in_json
from culture.cli.output import fail
from culture.cli.server import certificate, pid_file
from culture.config.links import endpoint
from culture.config.listen_policy import is_loopback
from culture.config.model import Listen, ServerConfig
from culture.config.values import fingerprint, server_name
from culture.federation import book
from culture.federation.book import Book
from culture.protocol.names import fold, short_name
from culture.protocol.vocabulary import Exit
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import AccountRefused, account_name
from culture.server.auth.invitations import (
    Invitation,
    Invitations,
    Kind,
    NotInvited,
    UnreadableInvitations,
    digest_of,
    new_key,
    path_of,
)

_MARK = "inv1_"
_CHECK = 4
_KINDS = ("machine", "person")


class NoCode(Exception):
    """A text is not a complete invitation code; the message says why."""


@dataclass(frozen=True, slots=True)
class InviteCode:
    """Contents of an invitation code: server, its certificate, who is invited, one-time key."""

    kind: Kind
    server: str
    address: str
    """``host:port``."""
    fingerprint: str
    """Fingerprint of its certificate; empty for a local address without TLS."""
    name: str
    key: str = field(repr=False)

    def __str__(self) -> str:
        text = "\n".join(astuple(self)).encode()
        return _MARK + base64.urlsafe_b64encode(text + _check(text)).decode().rstrip("=")

    @classmethod
    def parse(cls, word: str) -> "InviteCode":
        """Return the contents of an invitation code; raise NoCode if it is incomplete or invalid."""
        try:
            if not word.startswith(_MARK):
                raise ValueError(f"each begins with {_MARK}")
            kind, *rest = _decoded(word.removeprefix(_MARK)).decode().split("\n")
            if kind not in _KINDS or len(rest) != len(fields(cls)) - 1:
                raise ValueError("it is of another version")
            code = cls(kind, *rest)  # type: ignore[arg-type]
            code._verify()
        except AccountRefused:
            raise NoCode("it names nobody who could have an account") from None
        except ValueError as error:
            # Never quote the input: the code may still be valid.
            raise NoCode(str(error) if not isinstance(error, UnicodeError) else "it is no text") from None
        return code

    def _verify(self) -> None:
        """Raise ValueError if a field is invalid.

        Anybody can make a code, and its fields are printed and stored.
        """
        server_name(self.server)
        endpoint(self.address)
        if self.fingerprint:
            fingerprint(self.fingerprint)
        if self.kind == "person":
            account_name(self.name)
        elif self.name:
            server_name(self.name)


def _decoded(data: str) -> bytes:
    """Return the bytes that the part of an invitation code after ``inv1_`` encodes.

    ValueError is raised if the checksum does not match.
    """
    try:
        raw = base64.b64decode(data + "=" * (-len(data) % 4), b"-_", validate=True)
    except ValueError:
        raw = b""
    text, check = raw[:-_CHECK], raw[-_CHECK:]
    if _check(text) != check:
        raise ValueError("letters are missing, or are not those that it was made with")
    return text


def _check(text: bytes) -> bytes:
    return sha256(text).digest()[:_CHECK]


_EVERYWHERE = {"0.0.0.0", "::", ""}
_ANYWHERE = ("192.0.2.1", 9)
"""Address from the documentation range (RFC 5737), to ask which local address would be used."""

Expires = Annotated[str, typer.Option("--expires", metavar="TIME", help="How long it is valid: 10m, 1h, 2d.")]


def invite(
    peer: Annotated[
        str | None,
        typer.Argument(metavar="NAME", show_default=False, help="Name of the invited server.  [default: any server]"),
    ] = None,
    person: Annotated[
        str | None, typer.Option("--person", metavar="NAME", help="Invite a person; NAME is their new account.")
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(
            "--address", metavar="HOST:PORT", help="Address where others reach this server.  [default: its listener]"
        ),
    ] = None,
    expires: Expires = "1h",
    trust: AskedTrustOption = None,
    channel: CrossingChannels = None,
    config: ConfigFile = None,
    name: Name = None,
    data_dir: DataDir = None,
) -> None:
    """Invite a server, or with --person a person: print the command to type there.

    The code in it contains this server's address, its certificate's fingerprint, and a key that works once, until it
    expires. Send it over a channel you trust: whoever has it can join.
    """
    settings = settings_of(config, name, data_dir) if person is None else server_of(config, name, data_dir)
    if person is not None:
        _check_person(settings, person, [peer, trust, channel])
    settings_of_trust = trust_settings(trust, channel)
    if person is None:
        _check_machine(settings, peer, settings_of_trust)
    door, place = _reachable_listener(settings, address)
    seconds = _seconds(expires)
    if person is None:
        settings_of_trust = trust_settings(ask_trust(trust, channel, peer or "the machine that comes in"), channel)
    key, now = new_key(), time.time()
    invitation = Invitation(
        kind="machine" if person is None else "person",
        digest=digest_of(key),
        expires=now + seconds,
        name=person or peer or "",
        trust=settings_of_trust.get("trust") or "full",
        channels=tuple(settings_of_trust.get("channels") or ()),
    )
    try:
        Invitations(path_of(settings)).add(invitation, now)
    except (NotInvited, UnreadableInvitations, OSError) as error:
        fail(f"cannot store the invitation: {error}")
    if person is None:
        _create_link_file(settings)
    fingerprint = certificate.fingerprint_of(door.tls.certificate) if door.tls is not None else None
    code = InviteCode(invitation.kind, settings.name, place, fingerprint or "", invitation.name, key)
    typer.echo(f"culture mesh join {code}")
    if person is not None:
        _print_page_link(settings, person, key)
    typer.echo(_remarks(settings, invitation, place, expires), err=True)


def invites(
    as_json: AsJson = False,
    config: ConfigFile = None,
    name: Name = None,
    data_dir: DataDir = None,
) -> None:
    """List the open invitations."""
    rows = [_row(each) for each in _open(server_of(config, name, data_dir))]
    if as_json:
        typer.echo(in_json(rows))
    elif not rows:
        typer.echo("No invitation is open. Make one with `culture mesh invite`.")
    else:
        for row in rows:
            trust = f", trust {row['trust']}" if row["trust"] else ""
            left = f"{_time_left(row['expires'])} left{trust}"
            typer.echo(f"{row['id']}  {row['kind']:<7}  {row['name'] or 'any':<16}  {left}")


def uninvite(
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="ID", show_default=False, help="Id from `culture mesh invites`.")
    ] = None,
    everyone: Annotated[bool, typer.Option("--all", help="Every open invitation.")] = False,
    config: ConfigFile = None,
    name: Name = None,
    data_dir: DataDir = None,
) -> None:
    """Revoke invitations: they stop working."""
    settings = server_of(config, name, data_dir)
    open_ids = {each.id for each in _open(settings)}
    selected = open_ids if everyone else set(ids or ())
    if not selected and not everyone:
        fail("name an invitation (`culture mesh invites` lists them), or use --all", Exit.USAGE)
    if selected - open_ids:
        fail(
            f"no open invitation is called {' or '.join(sorted(selected - open_ids))}; "
            "`culture mesh invites` lists them"
        )
    closed = Invitations(path_of(settings)).take_back(frozenset(selected), time.time())
    typer.echo(f"{closed} {'invitation is' if closed == 1 else 'invitations are'} revoked.")


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


def _time_left(expires: object) -> str:
    assert isinstance(expires, float)
    minutes = max(1, round((expires - time.time()) / 60))
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h"


def _seconds(text: str) -> float:
    try:
        return parse_age(text)
    except ValueError as error:
        fail(f"--expires: {error}", Exit.USAGE)


def _check_machine(settings: ServerConfig, peer: str | None, trust: dict[str, object]) -> None:
    """End the command if the invited server could not be linked with these settings.

    ``settings``: those of this server. ``peer``: name of the invited server, None for any. ``trust``: the link's
    settings for trust and channels.
    """
    link_config({"name": peer or "anybody", "secret": "x" * 32, **trust})
    if peer is not None and short_name(fold(peer)) in links_of(settings):
        fail(f"{peer} is linked already; `culture mesh unlink {peer}` removes that link")
    if peer is not None and short_name(fold(peer)) == settings.short_name:
        fail(f"{peer} is this server itself")


def _check_person(settings: ServerConfig, person: str, others: list[object]) -> None:
    if any(others):
        fail("--person cannot be combined with the NAME of a server, --trust or --channel", Exit.USAGE)
    try:
        account_name(person)
    except AccountRefused as refused:
        fail(str(refused), Exit.USAGE)
    owner = AccountStore(settings.accounts_file, settings.account_prefix).owner_of(person)
    if owner is not None:
        fail(f"{person} has an account already; `culture account passwd {owner.name}` sets another password")


def _create_link_file(settings: ServerConfig) -> None:
    """Create a server's link file if it is missing, and wait until a running server has seen it."""
    path = book.path_of(settings)
    if path.exists():
        return
    Book(path).change(lambda entries: entries)
    if pid_file.running(settings.name):
        time.sleep(TAKEN_UP)


def _reachable_listener(settings: ServerConfig, address: str | None) -> tuple[Listen, str]:
    """Return the listener that an invited server or person can use, and its address for them.

    ``address``: the value of --address, or None. The command ends if no listener is safe to use.
    """
    doors = _doors(settings)
    encrypted = sorted((each for each in doors if each[0].tls is not None), key=lambda each: is_loopback(each[0].host))
    if address is not None:
        try:
            host, _ = endpoint(address)
        except ValueError as error:
            fail(f"--address: {error}", Exit.USAGE)
        if encrypted or is_loopback(host) or settings.trusted_network:
            return (encrypted or doors)[0][0], address
        fail(f"{settings.name} has no listener with TLS, so other machines cannot connect.\n{_listener_steps(host)}")
    if not doors:
        fail(f"{settings.name} has no listener")
    door, port = (encrypted or doors)[0]
    if not port:
        fail(f"{settings.name} takes any free port and does not run: start it first, or give --address", Exit.USAGE)
    host = _outgoing_address() if door.host in _EVERYWHERE and door.tls is not None else door.host
    return door, f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _doors(settings: ServerConfig) -> list[tuple[Listen, int]]:
    note = pid_file.running(settings.name)
    ports = [port for _, port in note.addresses] if note and note.addresses else [each.port for each in settings.listen]
    pairs = zip(settings.listen, ports, strict=False)
    return [(listener, port) for listener, port in pairs if listener.websocket is None]


def _outgoing_address() -> str:
    """Return the IPv4 address of this machine in its network; 127.0.0.1 if there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_ANYWHERE)
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"


def _listener_steps(host: str) -> str:
    """Return instructions to make a listener with TLS that other machines can reach as ``host``."""
    return (
        f"Type `culture server cert --name {shlex.quote(host)}`, put the lines it prints into culture.yaml, "
        "`culture server restart`, and invite again."
    )


def _print_page_link(settings: ServerConfig, person: str, key: str) -> None:
    """Print a link by which a person accepts an invitation in a browser, if the web page runs.

    ``person``: the account's name. ``key``: the invitation's one-time key.
    """
    # Takes long to load, and only this needs it.
    note = import_module("culture.cli.web.process").running(settings.name)
    if note is not None and note.url:
        typer.echo(f"Or in a browser: {note.url}/login/invited/{quote(person, safe='')}/{key}", err=True)


def _remarks(settings: ServerConfig, invitation: Invitation, place: str, expires: str) -> str:
    instruction = f"{invitation.name} types it" if invitation.name else "Type it on the other machine"
    lines = [
        f"{instruction}, within {expires}; it works once. `culture mesh join -` reads it from standard input.",
        f"`culture mesh uninvite {invitation.id}` revokes it.",
    ]
    if invitation.kind == "machine":
        lines.append(describe_trust(invitation.trust, invitation.channels, invitation.name))
        lines.append(
            f"The link can be removed at any time, on either side: `culture mesh unlink {invitation.name or 'NAME'}`."
        )
    else:
        lines.append(f"The account can be revoked at any time: `culture account revoke {invitation.name}`.")
    if not pid_file.running(settings.name):
        lines.append(f"{settings.name} does not run: `culture server start`, since it has to accept the invitation.")
    if is_loopback(endpoint(place)[0]):
        lines.append(
            f"The code points to {place}, which only this machine can reach. For others: --address HOST:PORT. "
            f"{_listener_steps('HOST')}"
        )
    else:
        lines.append(f"The code points to {place}; if others reach this machine at another address, use --address.")
    return "\n".join(lines)
