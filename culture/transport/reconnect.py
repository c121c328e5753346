"""The connect loop: dial, register, serve until the connection ends, back off, again.

Errors fall into three kinds. A lost connection or a refused registration is tried again for ever, after 1, 2, 4 ...
60 s. ``Hopeless`` (a wrong password) ends the loop: at once on the first connection, later after three more attempts,
because a server that is being restored may refuse for a while what it accepted before. ``WrongServer`` (another
certificate, no logins) is hopeless only at the start: later it is most likely something else that listens on our
server's port for some time.
"""

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from dataclasses import dataclass, replace

from culture.lib.backoff import Backoff
from culture.protocol.message import Message as Line
from culture.protocol.message import ProtocolError
from culture.runtime import REAL, Runtime
from culture.transport.connection import IrcConnection, dial, is_private
from culture.transport.dedup import Undelivered
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
    call_safely,
)
from culture.transport.view import NetworkView
from culture.transport.view_updates import apply

log = logging.getLogger(__name__)

_MAX_HOPELESS = 3
"""Attempts after a ``Hopeless`` error, once a connection has worked."""
_QUIT_TIMEOUT = 2.0


async def regain_nick(session: IrcSession, wanted: str, interval: float) -> None:
    """Change to the wanted nick once it is free; return when we have it.

    It is tried every ``interval`` seconds, and at once when its user leaves.
    """
    view = session.view
    if view.is_self(wanted):
        return

    log.warning("the nick %s is in use; using %s until it is free", wanted, view.nick)
    free = asyncio.Event()

    def check(line: Line) -> None:
        nick = view.fold(line.source.partition("!")[0])
        is_free = line.verb == "731" and any(
            view.fold(each) == view.fold(wanted) for each in line.params[-1].split(",")
        )
        if is_free or (line.verb in ("QUIT", "NICK") and nick == view.fold(wanted)):
            free.set()

    session.watchers.append(check)
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
        session.watchers.remove(check)


class ConnectionLost(Exception):
    """The connection has ended; the text of the exception says why."""


@dataclass(frozen=True, slots=True)
class Setup:
    """Parameters of the connect loop: address, identity, timeouts, nicks of agents and people."""

    address: Address
    identity: ClientIdentity
    timing: Timing
    agents: Collection[str]
    people: Collection[str] = ()
    patient: bool = True
    """Whether the first connection is tried again if it fails."""
    runtime: Runtime = REAL


class Reconnector:
    """Opens the connection to the server, and a new one whenever it ends.

    ``settle`` is awaited first on each new connection (it joins the channels and catches up); once it returns, the
    connection counts as settled, and ``tend`` runs in the background.
    """

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
        """The registered connection; None while there is none."""
        self.view = NetworkView(setup.identity.nick)
        """Channels and users as of this connection or the last one."""
        self.wanted_nick = setup.identity.nick
        """The nick to have, with the prefix that the server demands."""
        self.has_settled = False
        self._ready: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._stopping = False

    async def start(self) -> None:
        """Start the connect loop and return once a connection has settled.

        ``Hopeless`` is raised if the loop gives up before.
        """
        self._stopping = False
        self._ready = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run())
        try:
            await asyncio.shield(self._ready)
        except BaseException:
            await self.stop("")
            raise

    def set_identity(self, identity: ClientIdentity) -> None:
        """Use ``identity`` from the next connection on; the present connection is not changed."""
        self._setup = replace(self._setup, identity=identity)

    async def stop(self, reason: str) -> None:
        """Send QUIT with a reason and end the connect loop."""
        self._stopping = True
        if self._task is None:
            return
        if self.session is not None:
            self.session.write(Line("QUIT", (reason or "bye",)))
            await asyncio.wait({self._task}, timeout=_QUIT_TIMEOUT)
        self._task.cancel()
        await asyncio.wait({self._task})
        self._task = None
        self._report(ConnectionState.STOPPED, reason)

    async def _run(self) -> None:
        timing = self._setup.timing
        backoff = Backoff(timing.first_pause, timing.longest_pause, random=self._setup.runtime.chance.random)
        hopeless = 0
        while True:
            started_at = asyncio.get_running_loop().time()
            self._report(ConnectionState.CONNECTING, "")
            try:
                reason = await self._connect()
                hopeless = 0
            except Hopeless as error:
                # A wrong server goes away again; a login that our server refuses stays refused.
                hopeless += not isinstance(error, WrongServer)
                reason = str(error)
                if not self.has_settled or hopeless > _MAX_HOPELESS:
                    self._give_up(error)
                    return
                backoff.at_least(timing.longest_pause)
            except Exception as error:
                # A bug of ours: a new connection is better than none.
                log.exception("the connection of %s failed", self._setup.identity.nick)
                reason = f"internal error: {type(error).__name__}"
            if self._stopping:
                return
            if not self.has_settled and not self._setup.patient:
                self._give_up(ServerUnreachable(reason))
                return
            backoff.lasted(asyncio.get_running_loop().time() - started_at)
            pause = backoff.next()
            log.info("%s is not connected: %s; next attempt in %.1f s", self._setup.identity.nick, reason, pause)
            self._report(ConnectionState.LOST, reason)
            await asyncio.sleep(pause)

    def _give_up(self, error: Hopeless) -> None:
        if self._setup.patient:  # otherwise the caller sees the exception
            log.error("%s does not try to connect again: %s", self._setup.identity.nick, error)
        self._report(ConnectionState.HOPELESS, str(error))
        if self._ready is not None and not self._ready.done():
            self._ready.set_exception(error)

    async def _connect(self) -> str:
        """Open one connection and serve it until it ends; return why it ended or was not opened."""
        try:
            async with asyncio.timeout(self._setup.timing.registration):
                reader, writer = await dial(self._setup.address, self._setup.identity, runtime=self._setup.runtime)
        except TimeoutError:
            return "no answer"
        except OSError as error:
            return error.strerror or str(error)
        connection = IrcConnection(reader, writer, self._setup.timing.silence)
        encrypted = writer.get_extra_info("ssl_object") is not None
        registration = Registration(
            self._setup.identity, private=is_private(writer), encrypted=encrypted, runtime=self._setup.runtime
        )
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
            return "the server did not complete the registration in time"
        except (RegistrationRefused, ConnectionLost, ProtocolError) as error:
            return str(error)
        self.view, self.wanted_nick = view, registration.wanted
        reader = MessageParser(
            view, registration.enabled, self._setup.agents, self._setup.people, runtime=self._setup.runtime
        )
        session = IrcSession(connection, registration.enabled, view, self._listener, reader, timing.answer)
        self._listener.begun(session)
        self.session = session
        reason = connection.end
        cancellations = _cancellations()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(_read(session, connection, lines))
                group.create_task(connection.keep_alive())
                group.create_task(self._settle_and_tend(session))
                group.create_task(self._regain_nick(session))
        except* (ConnectionLost, Undelivered, ProtocolError, NotSent) as errors:
            reason = str(errors.exceptions[0])
            # Before Python 3.13 a group that ends by an error leaves its own request to cancel this task behind. Then
            # `asyncio.timeout` of Python 3.11.2 takes the next expiry for a cancellation, which would end this loop.
            if sys.version_info < (3, 13) and _cancellations() > cancellations:
                _current_task().uncancel()
        finally:
            self.session = None
            session.end(f"the connection was lost: {reason}")
        return reason

    async def _settle_and_tend(self, session: IrcSession) -> None:
        await self._settle(session)
        self.has_settled = session.settled = True
        self._report(ConnectionState.CONNECTED, "")
        if self._ready is not None and not self._ready.done():
            self._ready.set_result(None)
        await self._tend(session)

    async def _regain_nick(self, session: IrcSession) -> None:
        await session.barrier()
        await regain_nick(session, self.wanted_nick, self._setup.timing.regain)

    def _report(self, state: ConnectionState, detail: str) -> None:
        call_safely(self._on_state, state, detail)


async def _register(
    connection: IrcConnection,
    registration: Registration,
    lines: AsyncIterator[Line],
    view: NetworkView,
    patience: float,
) -> None:
    connection.write(*registration.begin())
    line = await _read_first(lines, patience)
    while line is not None:
        apply(view, line)
        if line.verb == "AUTHENTICATE":
            # Computing the SCRAM proof is slow by design.
            connection.write(*await asyncio.to_thread(list, registration.take(line)))
        else:
            connection.write(*registration.take(line))
        if registration.done:
            return
        line = await anext(lines, None)
    raise ConnectionLost(connection.end)


async def _read_first(lines: AsyncIterator[Line], patience: float) -> Line | None:
    """Return the first line of the server; None if it closes the connection.

    ``ConnectionLost`` is raised if nothing comes within ``patience`` seconds or the line is not IRC.
    """
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


def _current_task() -> "asyncio.Task[object]":
    task = asyncio.current_task()
    assert task is not None
    return task


def _cancellations() -> int:
    """Return how many requests to cancel the current task are pending."""
    return _current_task().cancelling()
