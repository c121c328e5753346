"""Keeping a connection: made, made again when it is lost, ever less often while it fails."""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from dataclasses import dataclass, replace

from culture.protocol.message import Message as Line
from culture.protocol.message import ProtocolError
from culture.transport.backoff import Backoff
from culture.transport.connection import IrcConnection
from culture.transport.dedup import Undelivered
from culture.transport.dialer import dial, is_private
from culture.transport.parse_messages import MessageParser
from culture.transport.registration import Registration, RegistrationRefused
from culture.transport.session import IrcSession, SessionListener
from culture.transport.types import (
    Address,
    ClientIdentity,
    ConnectionState,
    Hopeless,
    NotSent,
    OnState,
    ServerUnreachable,
    Timing,
    WrongServer,
    guarded,
)
from culture.transport.view import NetworkView
from culture.transport.view_updates import apply

log = logging.getLogger(__name__)


async def regain(session: IrcSession, wanted: str, interval: float) -> None:
    """Take the nick as soon as it is free; done when we have it."""
    view = session.view
    if view.is_self(wanted):
        return
    log.warning("%s is taken; %s until it is free", wanted, view.nick)
    free = asyncio.Event()

    def look(line: Line) -> None:
        nick = view.fold(line.source.partition("!")[0])
        gone = line.verb == "731" and any(view.fold(each) == view.fold(wanted) for each in line.params[-1].split(","))
        if gone or (line.verb in ("QUIT", "NICK") and nick == view.fold(wanted)):
            free.set()

    session.watchers.append(look)
    try:
        if "MONITOR" in view.features:
            await session.ask(Line("MONITOR", ("+", wanted)))
        while not view.is_self(wanted):
            try:
                async with asyncio.timeout(interval):
                    await free.wait()
            except TimeoutError:
                pass
            free.clear()
            await session.ask(Line("NICK", (wanted,)))
        if "MONITOR" in view.features:
            await session.ask(Line("MONITOR", ("-", wanted)))
    finally:
        session.watchers.remove(look)


log = logging.getLogger(__name__)

_FURTHER_TRIES = 3
"""How often what looks hopeless is tried again, once it had worked."""
_FAREWELL = 2.0


class ConnectionLost(Exception):
    """The connection is gone."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What a connection is made of."""

    address: Address
    identity: ClientIdentity
    timing: Timing
    agents: Collection[str]
    people: Collection[str] = ()
    patient: bool = True
    """Whether a first connection that fails is tried again."""


class Reconnector:
    """Owns the connection; ``settle`` is what each new one begins with, ``tend`` what goes on behind that."""

    def __init__(
        self,
        setup: Setup,
        listener: SessionListener,
        settle: Callable[[IrcSession], Awaitable[None]],
        tend: Callable[[IrcSession], Awaitable[None]],
        on_state: OnState | None,
    ) -> None:
        self._setup = setup
        self._listener = listener
        self._settle = settle
        self._tend = tend
        self._on_state = on_state
        self.session: IrcSession | None = None
        """The connection that stands; None while there is none."""
        self.view = NetworkView(setup.identity.nick)
        """Of this connection or of the last one."""
        self.wanted_nick = setup.identity.nick
        """With the prefix that the server demands."""
        self.has_settled = False
        self._ready: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._stopping = False

    async def start(self) -> None:
        """Return once a connection has settled; ``Hopeless`` when none ever will."""
        self._stopping = False
        self._ready = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._keep())
        try:
            await asyncio.shield(self._ready)
        except BaseException:
            await self.stop("")
            raise

    def renew(self, identity: ClientIdentity) -> None:
        """Log in with this identity from the next connection on."""
        self._setup = replace(self._setup, identity=identity)

    async def stop(self, reason: str) -> None:
        """Say goodbye and end everything."""
        self._stopping = True
        if self._task is None:
            return
        if self.session is not None:
            self.session.write(Line("QUIT", (reason or "bye",)))
            await asyncio.wait({self._task}, timeout=_FAREWELL)
        self._task.cancel()
        await asyncio.wait({self._task})
        self._task = None
        self._tell(ConnectionState.STOPPED, reason)

    async def _keep(self) -> None:
        timing = self._setup.timing
        backoff = Backoff(timing.first_pause, timing.longest_pause)
        hopeless = 0
        while True:
            begun = asyncio.get_running_loop().time()
            self._tell(ConnectionState.CONNECTING, "")
            try:
                reason = await self._live()
                hopeless = 0
            except Hopeless as error:
                # A wrong server is in the place of ours for a while; a login that ours refuses stays refused.
                hopeless += not isinstance(error, WrongServer)
                reason = str(error)
                if not self.has_settled or hopeless > _FURTHER_TRIES:
                    self._give_up(error)
                    return
                backoff.attempt = 64
            except Exception as error:
                # A fault of ours; whoever relies on the connection is better off with a new one.
                log.exception("the connection of %s failed", self._setup.identity.nick)
                reason = f"internal error: {type(error).__name__}"
            if self._stopping:
                return
            if not self.has_settled and not self._setup.patient:
                self._give_up(ServerUnreachable(reason))
                return
            backoff.stood(asyncio.get_running_loop().time() - begun)
            pause = backoff.next(random.random())
            log.info("%s is not connected: %s; next try in %.1f s", self._setup.identity.nick, reason, pause)
            self._tell(ConnectionState.LOST, reason)
            await asyncio.sleep(pause)

    def _give_up(self, error: Hopeless) -> None:
        if self._setup.patient:  # who tries once is there to hear it
            log.error("%s gives up: %s", self._setup.identity.nick, error)
        self._tell(ConnectionState.HOPELESS, str(error))
        if self._ready is not None and not self._ready.done():
            self._ready.set_exception(error)

    async def _live(self) -> str:
        """One connection from beginning to end; why it ended."""
        try:
            async with asyncio.timeout(self._setup.timing.registration):
                reader, writer = await dial(self._setup.address, self._setup.identity)
        except TimeoutError:
            return "no answer"
        except OSError as error:
            return error.strerror or str(error)
        connection = IrcConnection(reader, writer, self._setup.timing.silence)
        encrypted = writer.get_extra_info("ssl_object") is not None
        registration = Registration(self._setup.identity, private=is_private(writer), encrypted=encrypted)
        try:
            return await self._serve(connection, registration)
        finally:
            await connection.close()

    async def _serve(self, connection: IrcConnection, registration: Registration) -> str:
        lines = connection.lines()
        view = NetworkView(self._setup.identity.nick)
        timing = self._setup.timing
        try:
            async with asyncio.timeout(timing.registration):
                await _register(connection, registration, lines, view, timing.first_word)
        except TimeoutError:
            return "the server did not let us in in time"
        except (RegistrationRefused, ConnectionLost, ProtocolError) as error:
            return str(error)
        self.view, self.wanted_nick = view, registration.wanted
        reader = MessageParser(view, registration.enabled, self._setup.agents, self._setup.people)
        session = IrcSession(connection, registration.enabled, view, self._listener, reader, timing.answer)
        self._listener.begun(session)
        self.session = session
        reason = connection.end
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(_read(session, connection, lines))
                group.create_task(connection.keep_alive())
                group.create_task(self._settled(session))
                group.create_task(self._named(session))
        except* (ConnectionLost, Undelivered, ProtocolError, NotSent) as errors:
            reason = str(errors.exceptions[0])
        finally:
            self.session = None
            session.end(f"the connection was lost: {reason}")
        return reason

    async def _settled(self, session: IrcSession) -> None:
        await self._settle(session)
        self.has_settled = session.settled = True
        self._tell(ConnectionState.CONNECTED, "")
        if self._ready is not None and not self._ready.done():
            self._ready.set_result(None)
        await self._tend(session)

    async def _named(self, session: IrcSession) -> None:
        await session.barrier()
        await regain(session, self.wanted_nick, self._setup.timing.regain)

    def _tell(self, condition: ConnectionState, detail: str) -> None:
        guarded(self._on_state, condition, detail)


async def _register(
    connection: IrcConnection,
    registration: Registration,
    lines: AsyncIterator[Line],
    view: NetworkView,
    patience: float,
) -> None:
    connection.write(*registration.begin())
    line = await _first(lines, patience)
    while line is not None:
        apply(view, line)
        if line.verb == "AUTHENTICATE":
            # The proof of a password is made to take its time.
            connection.write(*await asyncio.to_thread(list, registration.take(line)))
        else:
            connection.write(*registration.take(line))
        if registration.done:
            return
        line = await anext(lines, None)
    raise ConnectionLost(connection.end)


async def _first(lines: AsyncIterator[Line], patience: float) -> Line | None:
    """Every server has something to say at once; whoever has not, or says something else, is none."""
    try:
        async with asyncio.timeout(patience):
            line = await anext(lines, None)
    except TimeoutError:
        raise ConnectionLost(f"nothing came within {patience:g} s") from None
    if line is not None and not (line.verb.isalpha() or (line.verb.isdigit() and line.source)):
        raise ConnectionLost("what answers there does not speak IRC")
    return line


async def _read(session: IrcSession, connection: IrcConnection, lines: AsyncIterator[Line]) -> None:
    async for line in lines:
        session.take(line)
        if line.verb == "ERROR" and line.params:
            connection.end = line.params[-1]
    raise ConnectionLost(connection.end)
