"""The queues of servers: never beyond their bounds, and empty when all is quiet."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from culture.config.skills import HistoryConfig
from tests.simulation.violation import Violation

if TYPE_CHECKING:
    from tests.simulation.servers import SimServer

_MOST_FOR_PEER = 32 << 20
_MOST_IN_LOG = 200_000
_MOST_IN_HISTORY = HistoryConfig().pending


def most_waiting(servers: "Sequence[SimServer]") -> int:
    """Return how many bytes wait for the client for which most do."""
    parts = [server.ircd.parts for server in servers if server.is_running and server.ircd is not None]
    return max((session.connection.waiting for each in parts for session in each.sessions), default=0)


def check_bounds(servers: "Sequence[SimServer]") -> list[Violation]:
    """Return each queue that is longer than its server allows, at any time."""
    return [
        Violation("queue", f"{server.name}: {text}")
        for server in servers
        if server.is_running
        for text in _over(server)
    ]


def _over(server: "SimServer") -> Iterator[str]:
    assert server.ircd is not None
    for session in server.ircd.parts.sessions:
        connection = session.connection
        if connection.owner is not None and connection.waiting > connection.owner.allowance() + connection.extra:
            yield f"{connection.waiting} bytes wait for a client"
    for name, peer in server.mesh.links.items():
        if peer.connection.waiting > _MOST_FOR_PEER:
            yield f"{peer.connection.waiting} bytes wait for {name}"
    if server.mesh.log.waiting > _MOST_IN_LOG:
        yield f"{server.mesh.log.waiting} changes of the log wait"
    if _waiting_history(server) > _MOST_IN_HISTORY:
        yield f"{_waiting_history(server)} messages wait for the history"


def _waiting_history(server: "SimServer") -> int:
    assert server.ircd is not None
    history: Any = server.ircd.parts.skills.get("history")
    waiting: int = history._writer.waiting
    return waiting


def check_idle(servers: "Sequence[SimServer]") -> list[Violation]:
    """Nothing waits when all is quiet: no log, no history, no send queue."""
    wrong = []
    for server in servers:
        assert server.ircd is not None
        waiting = {
            "bytes for clients": sum(session.connection.waiting for session in server.ircd.parts.sessions),
            "bytes for peers": sum(peer.connection.waiting for peer in server.mesh.links.values()),
            "changes of the log": server.mesh.log.waiting,
            "messages for the history": _waiting_history(server),
        }
        wrong += [Violation("queue", f"{server.name} has {count} {what}") for what, count in waiting.items() if count]
    return wrong
