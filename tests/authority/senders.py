"""The kinds of sender of the table in docs/server/security.md, each by its own way in."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

from culture.protocol.message import Message
from culture.protocol.vocabulary import UserClass
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import new_account
from tests.bridge.program import Program
from tests.support.client import Client, connected
from tests.support.people import verifier
from tests.support.waiting import PATIENCE
from tests.support.web import Browser
from tests.support.websocket import TEXT, frame, frames, request

CAPS = "message-tags"
NOBODY = 65534
"""Another user of the machine."""
GENERAL, STANDUP = ROOMS = ("#general", "#standup-demo")
# A client whose lines go through a process of its own: of another user, or of an agent.
_RELAY = """
import os, socket, sys, threading
"x".encode("idna")
port, uid = map(int, sys.argv[1:])
if uid >= 0:
    os.setgroups([]), os.setgid(uid), os.setuid(uid)
server = socket.create_connection(("127.0.0.1", port))
def send():
    while data := os.read(0, 65536):
        server.sendall(data)
    server.shutdown(socket.SHUT_RDWR)
threading.Thread(target=send, daemon=True).start()
while data := server.recv(65536):
    os.write(1, data)
"""


class Sender(Protocol):
    """Somebody who may say something, and where there is a way for it send lines of IRC."""

    nick: str

    async def say(self, channel: str, text: str) -> None:
        """Say it in a channel."""

    async def ask(self, line: str) -> list[Message] | None:
        """What the sender's own server answers to a line; None where there is no way to send one."""


class OnIRC:
    """A sender with a client."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.nick = client.nick

    async def say(self, channel: str, text: str) -> None:
        """Say it in a channel."""
        await self.client.ask(f"PRIVMSG {channel} :{text}")

    async def ask(self, line: str) -> list[Message] | None:
        """What the server answers."""
        return await self.client.ask(line)


class OnPage:
    """A person with a browser."""

    def __init__(self, browser: Browser, nick: str) -> None:
        self.browser = browser
        self.nick = nick

    async def say(self, channel: str, text: str) -> None:
        """Type it into the box for messages."""
        answer = await self.browser.post("/say", {"HX-Request": "true"}, room=channel, text=text)
        assert answer.status_code < 300 and "x-refused" not in answer.headers, answer.text

    async def ask(self, line: str) -> list[Message] | None:
        """Nothing: the page has no line for commands of IRC."""
        return None


class OnBridge:
    """A program with a token of the bridge."""

    def __init__(self, program: Program, nick: str) -> None:
        self.program = program
        self.nick = nick

    async def say(self, channel: str, text: str) -> None:
        """Call the tool for it."""
        await self.program.call("send_message", channel=channel, text=text)

    async def ask(self, line: str) -> list[Message] | None:
        """Nothing: the bridge has no tool for it."""
        return None


class OnWebSocket(Client):
    """A client whose lines are frames of a WebSocket."""

    def send_raw(self, data: bytes) -> None:
        """Send each line in a frame."""
        for line in data.splitlines():
            super().send_raw(frame(TEXT, line))

    async def line(self) -> bytes:
        """The next line; empty at the end of the connection."""
        async with asyncio.timeout(PATIENCE):
            try:
                head = await self.reader.readexactly(2)
                head += await self.reader.readexactly({126: 2, 127: 8}.get(head[1], 0))
                length = head[1] if head[1] < 126 else int.from_bytes(head[2:])
                content = await self.reader.readexactly(length)
            except asyncio.IncompleteReadError:
                return b""
        [(kind, text)] = frames(head + content)
        return text + b"\r\n" if kind == TEXT else b""


@asynccontextmanager
async def over_websocket(port: int) -> AsyncIterator[Client]:
    """A connection as pages of the listed origin make it."""
    async with connected(port) as plain:
        plain.send_raw(request())
        await plain.reader.readuntil(b"\r\n\r\n")
        yield OnWebSocket(plain.reader, plain.writer)


@asynccontextmanager
async def in_process(port: int, uid: int = -1, agent: str = "") -> AsyncIterator[Client]:
    """A connection from a process of another user, or from one that an agent has started."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-SEc", _RELAY, str(port), str(uid)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, **({"CULTURE_NICK": agent} if agent else {})},
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        # What a Client needs of a StreamWriter a pipe can do too.
        yield Client(process.stdout, process.stdin)
    finally:
        process.stdin.close()
        await process.wait()


async def come_in(client: Client, nick: str, secret: str = "") -> OnIRC:
    """Register, with the login of the nick's account where there is a secret, and enter the rooms."""
    if secret:
        client.send(f"PASS :{nick}:{secret}")
    await client.register(nick, CAPS)
    for room in ROOMS:
        await client.join(room)
    return OnIRC(client)


async def is_let_in(client: Client, nick: str) -> bool:
    """Whether somebody without a login comes in; nothing further is done."""
    client.send(f"NICK {nick}")
    client.send("USER u 0 * :U")
    try:
        while (line := await client.receive()).verb not in ("001", "464", "433"):
            pass
    except EOFError:
        return False
    return line.verb == "001"


class Accounts:
    """The accounts of a server, with the secret of each."""

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._store = AccountStore(folder / "accounts.json", name)
        self._name = name

    def person(self, name: str, user: str | None = None) -> None:
        """A person, who logs in with the password, or as this user of the machine."""
        self._store.add(new_account(name, UserClass.HUMAN, user=user, verifier=verifier(), always_on=False))

    def program(self, name: str, kind: UserClass) -> str:
        """An agent or a bot that the owner of the server makes an account for; the token it logs in with."""
        self._store.add(new_account(name, kind, always_on=False))
        return self.token(name)

    def token(self, name: str) -> str:
        """A token to log in with."""
        return self._store.add_token(name, "test")
