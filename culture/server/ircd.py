"""IRCd: puts the parts of a server together, runs and stops them."""

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from culture.config.listen_policy import without_logins
from culture.config.model import Listen, ServerConfig
from culture.protocol.message import Message
from culture.runtime import REAL, Runtime
from culture.server.auth import account_watch
from culture.server.auth.account_store import AccountStore
from culture.server.auth.authenticator import Authenticator, NetworkAuth, uids_of
from culture.server.auth.login_attempts import Logins
from culture.server.auth.sasl import Tokens
from culture.server.channels.ownership import StandingChannels
from culture.server.channels.registered_channels import RegisteredChannels
from culture.server.context import Context, ServerParts
from culture.server.core.dispatch import Dispatcher
from culture.server.core.encode import wire
from culture.server.core.ids import Ids
from culture.server.core.multiline import MultilineBatches
from culture.server.core.network import Network
from culture.server.core.recent_messages import RecentMessages
from culture.server.core.router import Router
from culture.server.core.session import Session
from culture.server.core.session_lifecycle import depart
from culture.server.core.tasks import ServerTasks
from culture.server.errors import StartError
from culture.server.handlers import COMMANDS
from culture.server.handlers.capability import OFFERED
from culture.server.lock import DataLock
from culture.server.metric_sources import ServerMetrics
from culture.server.metrics import Metrics
from culture.server.metrics_http import MetricsEndpoint
from culture.server.net import keepalive
from culture.server.net.connection import ClientConnection
from culture.server.net.connection_limits import AddressLimits, ConnectionGroups, used_descriptors
from culture.server.net.listener import Listener, Wrapping
from culture.server.net.poller import Poller
from culture.server.skill_host.loader import watch_for_links
from culture.server.skill_host.running_skills import Skills
from culture.server.subscriptions.metadata import Subscriptions
from culture.server.subscriptions.monitor import Monitors
from culture.server.subscriptions.notify_events import EventNotices
from culture.server.subscriptions.read_markers import ReadMarkers

log = logging.getLogger(__name__)

_LINGER = 5.0  # seconds that an ended client has to close its socket
_STEP = 0.02  # seconds between looks at unwritten queues while stopping
_MOST_CLOSING = 256  # further refused connections are closed without a word, to save descriptors
_NEED_RESTART = (
    "name",
    "nick_prefix",
    "listen",
    "trusted_network",
    "data_dir",
    "accounts_file",
    "oidc",
    "history",
    "logger",
    "urlindex",
    "rooms",
    "ledger",
    "audit",
    "skills",
    "metrics",
)


class IRCd:
    """An IRC server with all its parts, used as ``async with IRCd(config).running():``."""

    def __init__(
        self,
        config: ServerConfig,
        authenticator: Authenticator | None = None,
        poller: Poller | None = None,
        runtime: Runtime = REAL,
    ) -> None:
        self._poller = poller or Poller(runtime=runtime)
        self._runtime = runtime
        self._clock = runtime.now
        self._lock = DataLock(config.data_dir, runtime=runtime)
        self._listeners: list[Listener] = []
        self._address_limits = AddressLimits()
        self._groups = ConnectionGroups()
        self._closing = self._groups.closing
        self._uids = _trusted_uids(config)
        self._stopping = False
        self._running = False
        self.reload: Callable[[], ServerConfig] | None = None
        network = Network(config.channels, config.channel_modes, config.limits.whowas)
        self._wrapping = Wrapping(config.listen)
        accounts = AccountStore(config.accounts_file, config.account_prefix, runtime=runtime)
        logins = Logins(_issued_tokens(config, accounts, runtime=runtime), runtime=runtime)
        network.know_people(accounts.knows_people)
        _check_exposure(config, accounts)
        self._lock.acquire()
        ids = Ids(config.data_dir / "ids.json", config.short_name, runtime=runtime)
        router = Router(config.name, network, ids, self._poller.dirty)
        monitors = Monitors(router)
        batches = MultilineBatches(config.name)
        markers = ReadMarkers(router, config.data_dir / "read-markers.json", runtime=runtime)
        subscriptions = Subscriptions(router, network, monitors)
        tasks = ServerTasks()
        commands = dict(COMMANDS)
        path = config.data_dir / "channels.json"
        self._registered = RegisteredChannels(path, network, router, tasks, self._poller.dirty, runtime=runtime)
        self.parts = ServerParts(
            config=config,
            network=network,
            router=router,
            authenticator=authenticator or NetworkAuth(config),
            accounts=accounts,
            logins=logins,
            commands=commands,
            started=runtime.now(),
            rehash=self._rehash,
            turn=self._poller.turn,
            tasks=tasks,
            sessions={},
            on_session_end=[
                self._address_limits.release,
                self._groups.forget,
                logins.forget,
                monitors.clear,
                subscriptions.forget,
                batches.forget,
                markers.forget,
            ],
            on_session_attach=[],
            monitors=monitors,
            batches=batches,
            markers=markers,
            recent=RecentMessages(router, config.limits.redactable),
            subscriptions=subscriptions,
            skills=Skills(runtime=runtime),
            metrics=Metrics(),
            hand_over=self._hand_over,
            connect=lambda sock, layer: ClientConnection(sock, self._poller, layer),
            runtime=runtime,
        )
        EventNotices(self.parts)
        network.people_changed = StandingChannels(network, router, self._poller.dirty).review
        try:
            self.parts.skills.load(self.parts, commands, OFFERED)
        except BaseException:
            self._lock.release()
            raise
        self.scraping = MetricsEndpoint(self.parts.metrics.text)
        if config.metrics.endpoint is not None:
            ServerMetrics(self.parts, self._poller, commands)

    @property
    def port(self) -> int:
        """Return the port of the first listener of the configuration."""
        return self._listeners[0].port

    @property
    def ports(self) -> list[int]:
        """Return the ports of all listeners, in the order of the configuration."""
        return [listener.port for listener in self._listeners]

    @asynccontextmanager
    async def running(self) -> "AsyncIterator[IRCd]":
        """Run the server until the block ends, then tell all clients and stop it."""
        try:
            self._open_channels()
            await self.parts.skills.start()
            self._start()
            await self._start_scraping()
            yield self
        finally:
            await self.stop("Server shutting down")

    def rehash(self, config: ServerConfig) -> None:
        """Apply a new configuration, except the settings that need a restart (``_NEED_RESTART``)."""
        unchanged = {key: getattr(self.parts.config, key) for key in _NEED_RESTART}
        self.parts.config = config.model_copy(update=unchanged)
        self.parts.network.channel_modes = config.channel_modes
        if isinstance(self.parts.authenticator, NetworkAuth):
            self.parts.authenticator = NetworkAuth(config)
        self._uids = _trusted_uids(config)
        self._wrapping.reload()
        log.info("configuration reloaded")

    async def stop(self, reason: str) -> None:
        """Tell the clients ``reason``, write queued output within a time limit, close everything."""
        if not self._running:
            await self.parts.tasks.stop()
            await self._stop_skills()
            self._lock.release()
            return
        self._stopping = True
        for listener in self._listeners:
            listener.stop()
        self._listeners.clear()
        with self._poller.turn():
            for session in list(self.parts.sessions):
                session.close(reason)
        await self.scraping.stop()
        patience = self.parts.config.limits.shutdown_timeout
        await asyncio.gather(self._drain(patience), self.parts.skills.leave(patience))
        await self.parts.tasks.stop()
        await self._stop_skills()
        self.parts.logins.stop()
        self._registered.flush()
        if (changed := self.parts.markers.changed()) is not None:
            self.parts.markers.write(changed)
        for connection in self._closing:
            connection.abort()
        self._poller.stop()
        self._lock.release()
        self._running = False

    async def _stop_skills(self) -> None:
        await self.parts.skills.stop(self.parts.config.limits.shutdown_timeout)

    def _open_channels(self) -> None:
        """Open the channels of the configuration and the registered ones, before the skills start.

        Some skills replay messages that were sent in these channels.
        """
        self.parts.network.open_standing(self._clock())
        self._registered.restore()

    def _start(self) -> None:
        config = self.parts.config
        self._listeners = [Listener(each, self._poller, self._accept, self._groups.make_room) for each in config.listen]
        self._groups.other_descriptors = used_descriptors()
        self._poller.start()
        for listener in self._listeners:
            listener.start()
        self.parts.tasks.start(self._sweep())
        self.parts.tasks.start(account_watch.watch(self.parts))
        self.parts.tasks.start(watch_for_links(self.parts))
        self._running = True
        log.info("%s listens on %s", config.name, ", ".join(map(str, self._listeners)))

    async def _start_scraping(self) -> None:
        endpoint = self.parts.config.metrics.endpoint
        if endpoint is None:
            return
        try:
            await self.scraping.start(*endpoint)
        except OSError as error:
            raise StartError(
                f"cannot listen on {self.parts.config.metrics.listen} for metrics: {error.strerror}"
            ) from error
        log.info("metrics are at http://%s/metrics", self.parts.config.metrics.listen)

    def _accept(self, accepted: socket.socket, host: str, address: Listen) -> None:
        limits = self.parts.config.limits
        layer, tls = self._wrapping.wrap(address)
        connection = ClientConnection(accepted, self._poller, layer)
        session = Session(connection, self._poller.dirty, host, self._clock(), limits.pull_queue, self._ended)
        session.tls = tls
        session.is_websocket = address.websocket is not None
        exempt = self.parts.config.exempt
        why_not = self._address_limits.admit(session, host, limits, exempt, self._poller.now)
        if why_not is None:
            why_not = self._groups.admit(session, limits, exempt, self._uids)
            if why_not is not None:
                self._address_limits.release(session)
        if why_not is not None:
            self._turn_away(connection, why_not)
            return
        self.parts.sessions[session] = None
        connection.start(Dispatcher(Context(self.parts, session), self.parts.commands))

    def _hand_over(self, session: Session) -> ClientConnection:
        """Forget a session without a QUIT and return its connection, which becomes a server's link."""
        self.parts.sessions.pop(session, None)
        session.ended = True
        for forget in self.parts.on_session_end:
            forget(session)
        return session.connection

    def _turn_away(self, connection: ClientConnection, why: str) -> None:
        connection.start(None)
        connection.queue.append(wire(Message("ERROR", (why,))))
        connection.close()
        if len(self._closing) < _MOST_CLOSING:
            self._closing[connection] = None
        else:
            connection.abort()

    def _ended(self, session: Session, reason: str) -> None:
        self.parts.sessions.pop(session, None)
        for forget in self.parts.on_session_end:
            forget(session)
        if session.connection.is_open:
            self._closing[session.connection] = None
        # When the server stops, nobody is left to be told of each quit.
        if not self._stopping:
            depart(self.parts, session, reason)

    def _rehash(self) -> None:
        if self.reload is not None:
            self.rehash(self.reload())

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(keepalive.period(self.parts.config.limits))
            if self._stopping:
                return  # while stopping, clients keep their time to read what is left for them
            try:
                await self._sweep_once()
            except Exception:  # our bug: without further sweeps no client would be pinged or timed out
                log.exception("a sweep failed")

    async def _sweep_once(self) -> None:
        limits = self.parts.config.limits
        with self._poller.turn():
            now = self._poller.now
            keepalive.check(list(self.parts.sessions), limits, self.parts.config.name, now)
            self._address_limits.forget(limits, now)
            self.parts.logins.forget_tries(limits, self._clock())
            for gone in keepalive.reap(self._closing, now, _LINGER):
                del self._closing[gone]
            self.parts.batches.expire(now, limits.multiline_timeout)
            self.parts.recent.trim()
            changed = self.parts.markers.changed()
        if changed is not None:
            await asyncio.to_thread(self.parts.markers.write, changed)

    async def _drain(self, patience: float) -> None:
        """Wait until clients of ended sessions have read their data, at most ``patience`` seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                while any(each.is_open and each.waiting for each in self._closing):  # noqa: ASYNC110
                    await asyncio.sleep(_STEP)


def _issued_tokens(config: ServerConfig, accounts: AccountStore, *, runtime: Runtime) -> Tokens | None:
    if config.oidc is None:
        return None
    from culture.server.auth.oidc.tokens import IssuedTokens  # imports PyJWT and all of cryptography

    return IssuedTokens(config.oidc, accounts, runtime=runtime)


def _trusted_uids(config: ServerConfig) -> set[int]:
    """Return the uids whose connections are not limited: root, our own, those of ``local_users``."""
    return {0, os.getuid(), *uids_of(config.local_users)}


def _check_exposure(config: ServerConfig, accounts: AccountStore) -> None:
    """Raise StartError if the server would listen on a public address and nobody can log in.

    With the setting ``trusted_network`` only a warning is logged.
    """
    exposed = [each.host for each in config.listen if not each.is_loopback]
    if exposed and config.trusted_network:
        log.warning("trusted_network: %s can be reached without a login", ", ".join(exposed))
    elif exposed and config.oidc is None and not any(account.is_active for account in accounts.all()):
        raise StartError(without_logins(exposed))
