"""Logging in with a token, as a client does."""

import base64
import json

from culture.server.ircd import IRCd
from tests.support.client import Client, connected
from tests.support.issuer import bearer


async def show(client: Client, *pieces: str) -> str:
    """Log in by OAUTHBEARER with these pieces; the numeric that tells how it ended."""
    client.send("CAP REQ :sasl")
    client.send("AUTHENTICATE OAUTHBEARER")
    await client.expect("AUTHENTICATE", "+")
    for piece in pieces:
        client.send(f"AUTHENTICATE {piece}")
    while True:
        message = await client.receive()
        if message.verb == "AUTHENTICATE":
            client.send("AUTHENTICATE AQ==")
        elif message.verb in ("903", "904", "905"):
            return message.verb


def reason(client: Client) -> dict[str, str]:
    """What the client was told in JSON before it failed."""
    said = "".join(each.params[0] for each in client.seen if each.verb == "AUTHENTICATE" and each.params[0] != "+")
    told: dict[str, str] = json.loads(base64.b64decode(said))
    return told


async def logs_in(ircd: IRCd, token: str, authzid: str = "") -> bool:
    """Does it work, on a connection of its own?"""
    async with connected(ircd.port) as client:
        return await show(client, *bearer(token, authzid)) == "903"
