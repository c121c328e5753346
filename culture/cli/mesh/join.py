"""``culture mesh join``: come in with the code of an invitation, as a machine or as a person."""

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

from culture.cli.mesh import link_status
from culture.cli.mesh.common import (
    AskedTrustOption,
    CrossingChannels,
    Trust,
    ask_trust,
    believed,
    checked,
    consequence,
    links_of,
    settings_of,
    when,
    with_link,
    write,
)
from culture.cli.mesh.invite_code import InviteCode, NoCode
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


def welcome(code: InviteCode, nick: str, token: str) -> str:
    """Keep the token, and say how to be there."""
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
    """``culture say`` goes to the server of agents.yaml: written where there is no such file, else shown."""
    host, port = endpoint(code.address)
    said = {"name": code.server, "host": host, "port": port}
    if code.fingerprint:
        said |= {"tls": True, "fingerprint": code.fingerprint}
    file = paths.agents_file()
    word = f"culture say --nick {shlex.quote(nick)} '#general' hello"
    if file.exists():
        return [f"For `{word}` put this into {file}:", f"  server: {json.dumps(said)}"]
    with os.fdopen(open_private(file, os.O_WRONLY | os.O_EXCL), "w", encoding="utf-8") as target:
        target.write(f"server: {json.dumps(said)}\n")
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
    bool, typer.Option("--password-stdin", help="For a person: read the password from standard input, do not ask.")
]


def join(
    code: Annotated[
        str, typer.Argument(metavar="CODE", show_default=False, help="What the invitation says; - reads it from input.")
    ],
    trust: AskedTrustOption = None,
    channel: CrossingChannels = None,
    password_stdin: PasswordStdin = False,
    config: ConfigFile = None,
    name: Name = None,
    data_dir: DataDir = None,
) -> None:
    """Take up an invitation: link this server to the one that invites, or make your account there.

    Others on this machine can see the code while the command runs; it is good
    once, and used up then. What is kept afterwards is a fresh secret, in a
    file for its owner alone.
    """
    try:
        taken = InviteCode.parse((sys.stdin.readline() if code == "-" else code).strip())
    except NoCode as wrong:
        fail(
            f"this is no code of an invitation, or not all of it: {wrong}. Copy all of it, from inv1_ to its end; "
            "`culture mesh invite` on the other machine makes a new one",
            Exit.USAGE,
        )
    if taken.kind == "person":
        _join_person(taken, password_stdin)
    else:
        settings = settings_of(config, name, data_dir)
        _join_machine(settings, taken, _intended(settings, taken, trust, channel))


def _intended(settings: ServerConfig, code: InviteCode, trust: Trust | None, channel: list[str] | None) -> LinkConfig:
    """The link as it will be here; what cannot be is told before the key is used up."""
    if short_name(fold(code.server)) in links_of(settings):
        fail(f"{code.server} is linked already; `culture mesh unlink {code.server}` takes that link away first")
    if short_name(fold(code.server)) == settings.short_name:
        fail(
            f"the server that invites is called {code.server}, as this one is, and names differ in a mesh. Where there "
            f"is none here yet, `culture up -d --name NAME` makes one; else change `name:` in {paths.server_file()}"
        )
    if code.name and fold(code.name) not in (fold(settings.name), settings.short_name):
        fail(f"this invitation is for {code.name}, and this server is called {settings.name}")
    said = {"name": code.server, "address": code.address, "secret": secrets.token_urlsafe(32)}
    said["fingerprint"] = code.fingerprint
    _fitting(settings, said, trust, channel)  # mistakes are told before anybody is asked
    return _fitting(settings, said, ask_trust(trust, channel, code.server), channel)


def _fitting(
    settings: ServerConfig, said: dict[str, str], trust: Trust | None, channel: list[str] | None
) -> LinkConfig:
    """The link with this trust, if it can be one beside the others."""
    wanted = checked({**{key: value for key, value in said.items() if value}, **believed(trust, channel)})
    try:
        book.check(settings, [*links_of(settings).values(), wanted])
    except Misfit as wrong:
        fail(f"{wrong.key[-1]}: {wrong}", Exit.USAGE)
    return wanted


def _join_machine(settings: ServerConfig, code: InviteCode, wanted: LinkConfig) -> None:
    shown = certificate.ensured(settings) if wanted.encrypted else None
    identity = ClientIdentity(
        settings.name,
        certificate=shown.certificate if shown is not None else None,
        key=shown.key if shown is not None else None,
    )
    _asked(code, identity, "ENROL", settings.name, code.key, wanted.secret)
    write(settings, lambda entries: with_link(entries, wanted))
    typer.echo(f"{link_status.intended(wanted)}{when(settings)}.")
    typer.echo(consequence(wanted.trust, wanted.channels, wanted.name), err=True)
    if pid_file.running(settings.name) is None:
        typer.echo(f"Start it: `culture server start`, or `culture up`; `culture mesh unlink {code.server}` ends it.")
    else:
        _await_link(settings, wanted)


def _join_person(code: InviteCode, from_stdin: bool) -> None:
    typer.echo(f"{code.server} invites you as {code.name}. Choose a password.", err=True)
    try:
        password = ask_password(code.name, from_stdin)
    except NoTerminal as problem:
        fail(str(problem), Exit.USAGE)
    answer = _asked(code, ClientIdentity(code.name), "REDEEM", code.name, code.key, password)
    if len(answer) < 4 or answer[0] != "SUCCESS" or not _is_fit(code, *answer[2:4]):
        fail(f"{code.server} gives no answer that can be understood")
    typer.echo(welcome(code, nick=answer[2], token=answer[3]))


def _is_fit(code: InviteCode, nick: str, token: str) -> bool:
    """A stranger's server says what a file here is called, and what is in it: our nick, a token, and nothing else."""
    own = (fold(code.name), fold(f"{short_name(code.server)}-{code.name}"))
    return valid_nick(nick, _LONGEST_NICK) and fold(nick) in own and _TOKEN.fullmatch(token) is not None


def _asked(code: InviteCode, identity: ClientIdentity, verb: str, *params: str) -> tuple[str, ...]:
    host, port = endpoint(code.address)
    address = Address(host, port, bool(code.fingerprint), code.fingerprint or None)
    try:
        return asyncio.run(ask_once(address, identity, verb, *params))
    except RequestDeclined as no:
        fail(f"{code.server} says: {no}", Exit.DENIED)
    except Hopeless as no:
        fail(f"{no}. Nothing was told to it. Ask {code.server}'s owner for another invitation")
    except TimeoutError:
        fail(f"{code.server} at {code.address} does not answer", Exit.TIMED_OUT)
    except PortHeld as held:
        fail(f"{held}. An invitation of a server with TLS holds its certificate, and does not depend on the user")
    except OSError as error:
        fail(f"{code.server} cannot be reached at {code.address}: {error.strerror or error}. Does it run there?")


def _await_link(settings: ServerConfig, wanted: LinkConfig) -> None:
    end, row = time.monotonic() + _PATIENCE, link_status.at_rest(wanted)
    while time.monotonic() < end:
        row = next((each for each in link_status.figures(settings) if each["name"] == wanted.name), row)
        if row["state"] in ("linked", "syncing"):
            typer.echo(f"Linked. `culture mesh list` shows how it goes, `culture mesh unlink {wanted.name}` ends it.")
            return
        time.sleep(_LOOK)
    fail(f"not linked yet: {link_status.described(row)}", Exit.TIMED_OUT)
