"""People with accounts, and how they log in."""

import base64
from functools import cache
from pathlib import Path

from culture.protocol.message import Message
from culture.protocol.vocabulary import UserClass
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import new_account
from culture.server.auth.password import PasswordVerifier
from tests.support.client import Client

PASSWORD = "correct horse"


@cache
def verifier() -> PasswordVerifier:
    """Of the password; made once, since it takes a while, which is its purpose."""
    return PasswordVerifier.of(PASSWORD)


def accounts_of(folder: Path, *names: str, certificate: str | None = None) -> AccountStore:
    """Accounts of people who all have the same password, and the first of them a certificate."""
    store = AccountStore(folder / "accounts.json", "spark")
    for position, name in enumerate(names):
        shown = (certificate,) if certificate is not None and position == 0 else ()
        store.add(new_account(name, UserClass.HUMAN, verifier=verifier(), certificates=shown))
    return store


def plain(account: str, password: str) -> str:
    """What SASL PLAIN says (RFC 4616)."""
    return base64.b64encode(f"\0{account}\0{password}".encode()).decode()


async def mechanisms(client: Client) -> set[str]:
    """How the server lets this client log in."""
    client.send("CAP LS 302")
    offered = ""
    while True:
        line = await client.expect("CAP", None, "LS")
        offered += f" {line.params[-1]}"
        if line.params[2] != "*":
            break
    words = dict(word.partition("=")[::2] for word in offered.split())
    return set(words["sasl"].split(","))


async def authenticate(client: Client, mechanism: str, answer: str) -> Message:
    """Log in this way; the line that says whether it worked."""
    client.send("CAP REQ :sasl")
    client.send(f"AUTHENTICATE {mechanism}")
    while True:
        message = await client.receive()
        if message.verb == "AUTHENTICATE":
            client.send(f"AUTHENTICATE {answer}")
        elif message.verb in ("903", "904"):
            return message


async def come_in(client: Client, nick: str) -> None:
    """Register, once logged in or not."""
    client.send(f"NICK {nick}")
    client.send("USER u 0 * :U")
    client.send("CAP END")
    await client.expect("001", nick)
    await client.sync()
