"""Being on IRC for a moment as the person at the keyboard, never as an agent."""

import asyncio
import getpass
import re
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import typer

from culture.cli.agent_access import refuse_agents
from culture.cli.agents.local_servers import own_address, own_server
from culture.cli.agents.select_agents import load
from culture.cli.connect_hints import example_nick
from culture.cli.output import fail
from culture.cli.server.background import accepts, holder
from culture.config import paths
from culture.config.agents import ServerAddress
from culture.config.listen_policy import is_loopback
from culture.protocol.names import fold, is_channel, nearest, owner, short_name
from culture.protocol.numerics import Numeric
from culture.protocol.vocabulary import ControlWord, Exit, Receipt, UserClass
from culture.transport import (
    Address,
    ClientIdentity,
    Hopeless,
    IRCTransport,
    Message,
    NotSent,
    ServerUnreachable,
    Timing,
)

PATIENCE = 30.0
USE_IRC_CLIENT = "use irc_client (send, read, ask, who)"
_TIMING = Timing(first_word=5.0)
Result = TypeVar("Result")
AsNick = Annotated[
    str | None, typer.Option("--nick", metavar="NICK", help="Your nick.  [default: <server>-<login name>]")
]


@dataclass(frozen=True)
class IrcPerson:
    """Who speaks, and where."""

    address: Address
    nick: str


def run(doing: Coroutine[Any, Any, Result]) -> Result:
    """Do it; what the server refuses ends the command with the server's words."""
    try:
        return asyncio.run(doing)
    except NotSent as refusal:
        fail(str(refusal), Exit.DENIED if refusal.code else Exit.FAILED)
    except ServerUnreachable as error:
        fail(str(error))
    except Hopeless as error:
        fail(
            f"{error}; a token of your account belongs into ~/.culture/secrets/<nick> (`culture account token <name>`)"
        )
    except TimeoutError:
        fail("the server does not answer")
    except KeyboardInterrupt:
        raise typer.Exit(Exit.ABORTED) from None


def person(nick: str | None) -> IrcPerson:
    """The person at the keyboard; an agent is told what to use."""
    refuse_agents(USE_IRC_CLIENT)
    if nick is not None and fold(nick) in {fold(each.nick) for each in load().agents}:
        fail(f"{nick} is an agent, and this speaks as a person: leave --nick out, or name your own", Exit.USAGE)
    if (unreachable := no_server()) is not None:
        fail(unreachable)
    server = server_address()
    address = Address(server.host, server.port, server.tls, server.fingerprint, server.user)
    return IrcPerson(address, nick or _nick(server))


@asynccontextmanager
async def present(
    who: IrcPerson,
    on_message: Callable[[Message], None] | None = None,
    on_receipt: Callable[[str, Receipt], None] | None = None,
    on_progress: Callable[[str, Receipt, str], None] | None = None,
) -> AsyncIterator[IRCTransport]:
    """The person, connected."""
    secret = _secret(who.nick)
    identity = ClientIdentity(who.nick, who.nick if secret else None, secret, bot=False)
    transport = IRCTransport(
        who.address,
        identity,
        on_message=on_message,
        on_receipt=on_receipt,
        on_progress=on_progress,
        timing=_TIMING,
        patient=False,
    )
    try:
        await _start(transport)
        if fold(transport.nick) != fold(who.nick):
            typer.echo(f"{who.nick} is on with another client: you are {transport.nick} for now.", err=True)
        yield transport
    finally:
        await transport.stop()


async def _start(transport: IRCTransport) -> None:
    try:
        async with asyncio.timeout(PATIENCE):
            await transport.start()
    except ServerUnreachable as error:
        address = transport.address
        raise ServerUnreachable(
            f"no IRC server let you in at {address.host} port {address.port}: {error}. If something else listens "
            "there, end it or take another port; `culture server status` says whether your server runs, and "
            "`culture doctor` what is wrong"
        ) from None


@asynccontextmanager
async def within(transport: IRCTransport, place: str) -> AsyncIterator[None]:
    """In a channel for as long as it takes; nobody makes a channel by mistake."""
    is_there = not is_channel(place) or fold(place) in map(fold, transport.channels)
    if is_there:
        yield
        return
    channels = await transport.list_channels()
    if fold(place) not in map(fold, channels):
        near = nearest(place, channels)
        hint = f"did you mean {near}?" if near else f"there are {', '.join(channels)}" if channels else "there are none"
        raise NotSent(f"there is no channel {place} that you can see; {hint}")
    await transport.join_channel(place)
    try:
        yield
    finally:
        # Another command of the same person may have left it already.
        with suppress(NotSent):
            await transport.part_channel(place)


async def speak(transport: IRCTransport, target: str, text: str) -> list[str]:
    """Say it; ``NotSent`` where nobody has that name says what to type in its place."""
    try:
        return await transport.send_privmsg(target, text)
    except NotSent as refusal:
        if refusal.code != Numeric.ERR_NOSUCHNICK.code:
            raise NotSent(f"{target}: {refusal.reason}", refusal.code) from None
        raise NotSent(f"nobody here is called {target}; {await instead_of(transport, target)}", refusal.code) from None


async def as_command(transport: IRCTransport, target: str, text: str) -> str:
    """The text with a mention of the agent it is said to, where the whole of it is a control word; else the text.

    In private a daemon takes only what mentions its agent as a control word: `help` alone is for the agent.
    """
    words = text.casefold().split()
    is_release = words[:2] == ControlWord.GO_ON.split() and len(words) == 3
    if is_channel(target) or not (is_release or " ".join(words) in set(ControlWord)):
        return text
    agents = (each for each in await transport.send_who(target) if each.kind in (UserClass.AGENT, UserClass.BOT))
    return f"@{target} {text}" if any(agents) else text


async def instead_of(transport: IRCTransport, target: str) -> str:
    """What may have been meant by a name that nobody has."""
    if fold(f"#{target}") in map(fold, await transport.list_channels()):
        return f"a channel begins with #, in quotes: '#{target}'"
    agents = [agent.nick for agent in load().agents]
    near = nearest(target, agents)
    if near is not None and fold(near) == fold(target):
        return f"it does not run: `culture start {near}`"
    return f"did you mean {near}?" if near else "`culture who '#general'` shows who is there"


def no_server() -> str | None:
    """Why nothing can be said, with what to type; None where the server of the agents answers."""
    server = server_address()
    if accepts((server.host, server.port)):
        held = holder(server)
        return None if held is None else str(held)
    return (
        f"no server answers at {server.host} port {server.port}. `culture up -d` starts everything, "
        "`culture server start` the server alone"
    )


def server_address() -> ServerAddress:
    """The one that agents.yaml names, else the one that runs here."""
    settings = load()
    named, is_named = settings.server, "server" in settings.model_fields_set
    if is_named and (not is_loopback(named.host) or accepts((named.host, named.port))):
        return named
    own = own_address()
    return own if not is_named or accepts((own.host, own.port)) else named


def _nick(server: ServerAddress) -> str:
    own = own_server(server)
    if own is not None:
        return example_nick(own)
    first = next((owner(agent.nick) for agent in load().agents), "")
    prefix = short_name(server.name) if server.name else first
    name = re.sub(r"[^A-Za-z0-9_-]", "", _login()).lstrip("_-") or "me"
    return f"{prefix}-{name}" if prefix else name


def _login() -> str:
    """The login name of the shell's user; empty for a user id without one."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def _secret(nick: str) -> str | None:
    try:
        return paths.secret_file(nick).read_text(encoding="utf-8").strip() or None
    except (FileNotFoundError, NotADirectoryError):
        return None
