"""What somebody has who has just been given an account elsewhere: a secret for the command line, lines for clients."""

import json
import os
import shlex

from culture.cli.code import Code
from culture.config import paths
from culture.config.links import endpoint
from culture.config.paths import open_private


def welcome(code: Code, nick: str, token: str) -> str:
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
    with os.fdopen(open_private(file, os.O_WRONLY | os.O_TRUNC), "w", encoding="utf-8") as target:
        os.fchmod(target.fileno(), paths.PRIVATE_FILE)
        target.write(f"{token}\n")


def _command_line(code: Code, nick: str) -> list[str]:
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


def _clients(code: Code, nick: str) -> list[str]:
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
