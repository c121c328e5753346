"""The server's own metrics: users, connections, messages, commands."""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

from culture import __version__
from culture.server.commands import Command
from culture.server.context import Context, ServerParts
from culture.server.events import Arrived, Joined, Left, Parted, Said
from culture.server.metrics import Sample
from culture.server.net.poller import Poller


class ServerMetrics:
    """Adds the server's own metrics, and counts messages, events and commands for them."""

    def __init__(self, parts: ServerParts, poller: Poller, commands: dict[str, Command]) -> None:
        self._parts = parts
        self._messages: Counter[str] = Counter()
        self._commands: Counter[str] = Counter()
        self._events: Counter[str] = Counter()
        parts.router.subscribe(self._count_message, Said)
        parts.router.subscribe(self._count_event, Arrived, Left, Joined, Parted)
        for verb, command in list(commands.items()):
            commands[verb] = command._replace(handler=self._counting(verb, command.handler))
        self._add(poller)

    def _count_message(self, event: Said) -> None:
        self._messages[event.verb] += 1

    def _count_event(self, event: Arrived | Left | Joined | Parted) -> None:
        self._events[type(event).__name__.lower()] += 1

    def _counting(self, verb: str, handler: Callable[..., Any]) -> Callable[..., Any]:
        counts = self._commands

        @wraps(handler)
        def counted(ctx: Context, *args: Any) -> Any:
            counts[verb] += 1
            return handler(ctx, *args)

        return counted

    def _add(self, poller: Poller) -> None:
        parts, metrics = self._parts, self._parts.metrics
        network, router, now = parts.network, parts.router, parts.runtime.now
        metrics.gauge("culture_info", "The running version.", lambda: [({"version": __version__}, 1)])
        metrics.gauge("culture_up_seconds", "Seconds since the server started.", lambda: now() - parts.started)
        metrics.gauge("culture_users", "Users on all servers of the mesh.", lambda: len(network.users))
        metrics.gauge("culture_local_users", "Users with a session here.", lambda: len(router.sessions))
        metrics.gauge("culture_sessions", "Connections of clients.", lambda: len(parts.sessions))
        metrics.gauge("culture_channels", "Channels.", lambda: len(network.channels))
        metrics.gauge("culture_servers", "Servers of the mesh, including this one.", lambda: len(network.servers) + 1)
        metrics.gauge("culture_send_queue_bytes", "Bytes in send queues that clients have not read.", self._queued)
        metrics.gauge("culture_skills_off", "Skills that failed and are switched off.", lambda: len(parts.skills.off))
        metrics.counter("culture_received_bytes_total", "Bytes read from all sockets.", lambda: poller.received)
        metrics.counter("culture_sent_bytes_total", "Bytes written to all sockets.", lambda: poller.sent)
        metrics.counter("culture_messages_total", "Messages from users of all servers.", _by("verb", self._messages))
        metrics.counter("culture_events_total", "Users who came, left, joined and parted.", _by("kind", self._events))
        metrics.counter("culture_commands_total", "Commands from clients.", _by("verb", self._commands))

    def _queued(self) -> float:
        return sum(session.connection.waiting for session in self._parts.sessions)


def _by(label: str, counts: Counter[str]) -> Callable[[], Iterator[Sample]]:
    return lambda: (({label: name}, count) for name, count in sorted(counts.items()))
