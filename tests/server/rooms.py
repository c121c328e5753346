"""Rooms with people in them, and short forms of what clients are told."""

from culture.protocol.message import Message
from tests.server.conftest import Crowd
from tests.support.client import Client


def lines(messages: list[Message]) -> list[tuple[str, ...]]:
    """Verbs and parameters."""
    return [(message.verb, *message.params) for message in messages]


def codes(messages: list[Message]) -> list[str]:
    """Verbs only."""
    return [message.verb for message in messages]


async def room_of(crowd: Crowd, *others: str) -> list[Client]:
    """The operator of #room, called ori, and these members; nothing is left unread."""
    clients = [await crowd.join(f"spark-{name}", "#room") for name in ("ori", *others)]
    for client in clients:
        await client.sync()
    return clients


async def modes_of(client: Client, channel: str = "#room") -> tuple[str, ...]:
    """What 324 says."""
    return (await client.ask(f"MODE {channel}"))[0].params[2:]
