"""A short IRC connection as the person who types the command, never as an agent."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import typer

from culture.cli.agent_access import refuse_agents
from culture.cli.agents.select_agents import load
from culture.cli.local_servers import example_nick, login_name, own_address, own_server
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
    """The nick of the person who types a command, and the address of the server."""

    address: Address
    nick: str


def run(doing: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine that uses IRC and return its result.

    The command ends with an error if the server refuses something or cannot be reached.
    """
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


def current_person(nick: str | None) -> IrcPerson:
    """Return the nick of the person who types the command, and the server's address.

    ``nick``: the nick to use, None for the person's usual one. The command ends if an agent types it or the server does
    not answer.
    """
    refuse_agents(USE_IRC_CLIENT)
    if nick is not None and fold(nick) in {fold(each.nick) for each in load().agents}:
        fail(f"{nick} is an agent, and this command speaks as a person: leave out --nick, or use your own", Exit.USAGE)
    if (unreachable := unreachable_reason()) is not None:
        fail(unreachable)
    server = server_address()
    address = Address(server.host, server.port, server.tls, server.fingerprint, server.user)
    return IrcPerson(address, nick or _nick(server))


@asynccontextmanager
async def connected(
    who: IrcPerson,
    on_message: Callable[[Message], None] | None = None,
    on_receipt: Callable[[str, Receipt], None] | None = None,
    on_progress: Callable[[str, Receipt, str], None] | None = None,
) -> AsyncIterator[IRCTransport]:
    """Yield an IRC connection as the person who types the command; it is closed after the block.

    ``on_message`` is called for each message, ``on_receipt`` for receipts of the server (stored), ``on_progress`` for
    receipts of recipients.
    """
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
            typer.echo(f"{who.nick} is connected with another client: you are {transport.nick} for now.", err=True)
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
async def joined(transport: IRCTransport, place: str) -> AsyncIterator[None]:
    """Be in the channel ``place`` during the block; NotSent is raised if it does not exist.

    Nothing is done if ``place`` is a nick.
    """
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


async def send_message(transport: IRCTransport, target: str, text: str) -> list[str]:
    """Send a message to a channel or nick and return its msgids, several if it had to be split.

    NotSent is raised with the reason if the server refuses. For an unknown nick the reason says what to type instead.
    """
    try:
        return await transport.send_privmsg(target, text)
    except NotSent as refusal:
        if refusal.code != Numeric.ERR_NOSUCHNICK.code:
            raise NotSent(f"{target}: {refusal.reason}", refusal.code) from None
        raise NotSent(
            f"nobody here is called {target}; {await suggest_target(transport, target)}", refusal.code
        ) from None


async def with_mention_if_command(transport: IRCTransport, target: str, text: str) -> str:
    """Return a message's text, with a mention of its target added if it is a control word.

    In a private message a daemon obeys a control word only with a mention of its agent: `help` alone goes to the model.
    """
    words = text.casefold().split()
    is_release = words[:2] == ControlWord.GO_ON.split() and len(words) == 3
    if is_channel(target) or not (is_release or " ".join(words) in set(ControlWord)):
        return text
    agents = (each for each in await transport.send_who(target) if each.kind in (UserClass.AGENT, UserClass.BOT))
    return f"@{target} {text}" if any(agents) else text


async def suggest_target(transport: IRCTransport, target: str) -> str:
    """Return a phrase that says which nick the person may have meant by the unknown ``target``."""
    if fold(f"#{target}") in map(fold, await transport.list_channels()):
        return f"a channel begins with #, in quotes: '#{target}'"
    agents = [agent.nick for agent in load().agents]
    near = nearest(target, agents)
    if near is not None and fold(near) == fold(target):
        return f"it does not run: `culture start {near}`"
    return f"did you mean {near}?" if near else "`culture who '#general'` shows who is there"


def unreachable_reason() -> str | None:
    """Return, as text, why the server cannot be reached and what to type; None if it can be."""
    server = server_address()
    if accepts((server.host, server.port)):
        held = holder(server)
        return None if held is None else str(held)
    return (
        f"no server answers at {server.host} port {server.port}. `culture up -d` starts everything, "
        "`culture server start` the server alone"
    )


def server_address() -> ServerAddress:
    """Return the address of the server in agents.yaml, or of the one that runs here.

    The latter is returned only if the former does not answer.
    """
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
    name = re.sub(r"[^A-Za-z0-9_-]", "", login_name()).lstrip("_-") or "me"
    return f"{prefix}-{name}" if prefix else name


def _secret(nick: str) -> str | None:
    try:
        return paths.secret_file(nick).read_text(encoding="utf-8").strip() or None
    except (FileNotFoundError, NotADirectoryError):
        return None
