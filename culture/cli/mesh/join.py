"""``culture mesh join``: accepts an invitation, as a server or as a person."""

import asyncio
import json
import os
import re
import secrets
import shlex
import sys
import time
from typing import Annotated

import typer

from culture.cli.mesh import links
from culture.cli.mesh.invite import InviteCode, NoCode
from culture.cli.mesh.links import (
    AskedTrustOption,
    CrossingChannels,
    Trust,
    ask_trust,
    change_links,
    describe_trust,
    link_config,
    links_of,
    settings_of,
    trust_settings,
    when_effective,
    with_link,
)
from culture.cli.options import ConfigFile, DataDir, Name
from culture.cli.output import fail
from culture.cli.secret_input import NoTerminal, ask_password
from culture.cli.server import pid_file
from culture.config import paths
from culture.config.links import LinkConfig, endpoint
from culture.config.model import ServerConfig
from culture.config.peer_uid import PortHeld
from culture.config.values import Misfit
from culture.federation import book, certificate
from culture.lib.files import open_private, replace_file
from culture.protocol.names import fold, short_name, valid_nick
from culture.protocol.vocabulary import Exit
from culture.transport import Address, ClientIdentity, Hopeless
from culture.transport.one_shot import RequestDeclined, ask_once


def store_login(code: InviteCode, nick: str, token: str) -> str:
    """Store the token of a new account; return a text for people on how to connect.

    ``code``: the accepted invitation. ``nick``: the account's nick.
    """
    _keep(nick, token)
    return "\n".join(
        [
            f"You are {nick} on {code.server}. Your password is the one you chose; nothing here keeps it.",
            f"A token for this machine's commands is in {paths.secret_file(nick)}.",
            *_command_line(code, nick),
            "",
            *_clients(code, nick),
        ]
    )


def _keep(nick: str, token: str) -> None:
    file = paths.secret_file(nick)
    replace_file(file, f"{token}\n")


def _command_line(code: InviteCode, nick: str) -> list[str]:
    """Return lines for people on how to use `culture say` with the server that invited them.

    If there is no agents.yaml, one is written that names this server.
    """
    host, port = endpoint(code.address)
    address = {"name": code.server, "host": host, "port": port}
    if code.fingerprint:
        address |= {"tls": True, "fingerprint": code.fingerprint}
    file = paths.agents_file()
    word = f"culture say --nick {shlex.quote(nick)} '#general' hello"
    if file.exists():
        return [f"For `{word}` put this into {file}:", f"  server: {json.dumps(address)}"]
    with os.fdopen(open_private(file, os.O_WRONLY | os.O_EXCL), "w", encoding="utf-8") as target:
        target.write(f"server: {json.dumps(address)}\n")
    return [f"Try: {word}"]


def _clients(code: InviteCode, nick: str) -> list[str]:
    host, port = endpoint(code.address)
    place, user = code.server.partition(".")[0], code.name
    tls = bool(code.fingerprint)
    weechat = [
        f"/server add {place} {host}/{port} {'-tls' if tls else '-notls'} -nicks={nick} -autoconnect",
        *([f"/set irc.server.{place}.tls_fingerprint {code.fingerprint}"] if tls else []),
        f"/set irc.server.{place}.sasl_username {user}",
        f"/set irc.server.{place}.sasl_password <your password>",
        f"/connect {place}",
    ]
    pinned = f" -tls -notls_verify -tls_pinned_cert {_with_colons(code.fingerprint)}" if tls else ""
    irssi = [
        f"/network add -sasl_username {user} -sasl_password <your password> -sasl_mechanism PLAIN -nick {nick} {place}",
        f"/server add -auto -network {place}{pinned} {host} {port}",
        f"/connect {place}",
    ]
    return ["weechat:", *(f"  {each}" for each in weechat), "irssi:", *(f"  {each}" for each in irssi)]


def _with_colons(fingerprint: str) -> str:
    return ":".join(fingerprint[at : at + 2] for at in range(0, len(fingerprint), 2)).upper()


_PATIENCE = 20.0
_LOOK = 0.25
_LONGEST_NICK = 64
_TOKEN = re.compile(r"[A-Za-z0-9_-]{16,200}")

PasswordStdin = Annotated[
    bool,
    typer.Option("--password-stdin", help="For a person: read the password from standard input instead of asking."),
]


def join(
    code: Annotated[
        str, typer.Argument(metavar="CODE", show_default=False, help="Invitation code; - reads it from standard input.")
    ],
    trust: AskedTrustOption = None,
    channel: CrossingChannels = None,
    password_stdin: PasswordStdin = False,
    config: ConfigFile = None,
    name: Name = None,
    data_dir: DataDir = None,
) -> None:
    """Accept an invitation: link this server to the inviting one, or create your account there.

    Other users of this machine can see the code while the command runs; it works only once, and is used up then. A
    new secret is stored in a file that only you can read.
    """
    try:
        invitation = InviteCode.parse((sys.stdin.readline() if code == "-" else code).strip())
    except NoCode as wrong:
        fail(
            f"this is not a complete invitation code: {wrong}. Copy all of it, from inv1_ to its end; "
            "`culture mesh invite` on the other machine makes a new one",
            Exit.USAGE,
        )
    if invitation.kind == "person":
        _join_person(invitation, password_stdin)
    else:
        settings = settings_of(config, name, data_dir)
        _join_machine(settings, invitation, _intended(settings, invitation, trust, channel))


def _intended(settings: ServerConfig, code: InviteCode, trust: Trust | None, channel: list[str] | None) -> LinkConfig:
    """Return the link that an invitation would make; its one-time key is not used yet.

    ``settings``: those of this server. ``trust``, ``channel``: values of the options. The command ends if the
    invitation or an option does not fit this server.
    """
    if short_name(fold(code.server)) in links_of(settings):
        fail(f"{code.server} is linked already; `culture mesh unlink {code.server}` removes that link first")
    if short_name(fold(code.server)) == settings.short_name:
        fail(
            f"the server that invites is called {code.server}, as this one is, and names differ in a mesh. Where there "
            f"is none here yet, `culture up -d --name NAME` makes one; else change `name:` in {paths.server_file()}"
        )
    if code.name and fold(code.name) not in (fold(settings.name), settings.short_name):
        fail(f"this invitation is for {code.name}, and this server is called {settings.name}")
    fields = {"name": code.server, "address": code.address, "secret": secrets.token_urlsafe(32)}
    fields["fingerprint"] = code.fingerprint
    _checked_link(settings, fields, trust, channel)  # report mistakes before asking
    return _checked_link(settings, fields, ask_trust(trust, channel, code.server), channel)


def _checked_link(
    settings: ServerConfig, fields: dict[str, str], trust: Trust | None, channel: list[str] | None
) -> LinkConfig:
    """Return a link with these fields, trust and channels; end the command if it is invalid.

    ``settings``: those of this server. ``fields``: name, address, secret and fingerprint of the link.
    """
    link = link_config({**{key: value for key, value in fields.items() if value}, **trust_settings(trust, channel)})
    try:
        book.check(settings, [*links_of(settings).values(), link])
    except Misfit as wrong:
        fail(f"{wrong.key[-1]}: {wrong}", Exit.USAGE)
    return link


def _join_machine(settings: ServerConfig, code: InviteCode, link: LinkConfig) -> None:
    certificate_files = certificate.ensured(settings) if link.encrypted else None
    identity = ClientIdentity(
        settings.name,
        certificate=certificate_files.certificate if certificate_files is not None else None,
        key=certificate_files.key if certificate_files is not None else None,
    )
    _request(code, identity, "ENROL", settings.name, code.key, link.secret)
    change_links(settings, lambda entries: with_link(entries, link))
    typer.echo(f"{links.describe_link(link)}{when_effective(settings)}.")
    typer.echo(describe_trust(link.trust, link.channels, link.name), err=True)
    if pid_file.running(settings.name) is None:
        typer.echo(
            f"Start it: `culture server start`, or `culture up`; `culture mesh unlink {code.server}` removes the link."
        )
    else:
        _await_link(settings, link)


def _join_person(code: InviteCode, from_stdin: bool) -> None:
    typer.echo(f"{code.server} invites you as {code.name}. Choose a password.", err=True)
    try:
        password = ask_password(code.name, from_stdin)
    except NoTerminal as problem:
        fail(str(problem), Exit.USAGE)
    answer = _request(code, ClientIdentity(code.name), "REDEEM", code.name, code.key, password)
    if len(answer) < 4 or answer[0] != "SUCCESS" or not _is_valid_login(code, *answer[2:4]):
        fail(f"{code.server} gave an answer that makes no sense")
    typer.echo(store_login(code, nick=answer[2], token=answer[3]))


def _is_valid_login(code: InviteCode, nick: str, token: str) -> bool:
    """Whether a nick and a token that a foreign server sent are safe as file name and contents.

    ``code``: the invitation, for whose person the nick must be.
    """
    own = (fold(code.name), fold(f"{short_name(code.server)}-{code.name}"))
    return valid_nick(nick, _LONGEST_NICK) and fold(nick) in own and _TOKEN.fullmatch(token) is not None


def _request(code: InviteCode, identity: ClientIdentity, verb: str, *params: str) -> tuple[str, ...]:
    host, port = endpoint(code.address)
    address = Address(host, port, bool(code.fingerprint), code.fingerprint or None)
    try:
        return asyncio.run(ask_once(address, identity, verb, *params))
    except RequestDeclined as no:
        fail(f"{code.server} says: {no}", Exit.DENIED)
    except Hopeless as no:
        fail(f"{no}. Nothing was sent to it. Ask {code.server}'s owner for another invitation")
    except TimeoutError:
        fail(f"{code.server} at {code.address} does not answer", Exit.TIMED_OUT)
    except PortHeld as held:
        fail(f"{held}. An invitation of a server with TLS holds its certificate, and does not depend on the user")
    except OSError as error:
        fail(f"{code.server} cannot be reached at {code.address}: {error.strerror or error}. Does it run there?")


def _await_link(settings: ServerConfig, link: LinkConfig) -> None:
    end, row = time.monotonic() + _PATIENCE, links.idle_state(link)
    while time.monotonic() < end:
        row = next((each for each in links.link_states(settings) if each["name"] == link.name), row)
        if row["state"] in ("linked", "syncing"):
            typer.echo(f"Linked. `culture mesh list` shows its state, `culture mesh unlink {link.name}` removes it.")
            return
        time.sleep(_LOOK)
    fail(f"not linked yet: {links.describe_state(row)}", Exit.TIMED_OUT)
