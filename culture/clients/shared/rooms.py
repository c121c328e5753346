"""Rooms that organise themselves: an agent joins what it is invited to when they have a tag in common."""

import asyncio
import logging
from collections.abc import Iterable

from culture.protocol.vocabulary import ChannelKey
from culture.transport import IRCTransport, NotSent

log = logging.getLogger(__name__)

MOST_JOINS = 20
"""So many invitations are looked at at once; further ones wait for another."""


class Rooms:
    """Answers invitations as the agent's configuration says."""

    def __init__(self, transport: IRCTransport, tags: Iterable[str], *, join: bool) -> None:
        self._transport = transport
        self._tags = {tag.casefold() for tag in tags}
        self._join = join
        self._joining: set[asyncio.Task[None]] = set()

    def invited(self, channel: str, by: str) -> None:
        """Somebody, or the server, invites the agent."""
        if not self._join or len(self._joining) >= MOST_JOINS:
            log.info("invited to %s by %s; not joined", channel, by)
            return
        task = asyncio.create_task(self._look(channel, by), name=f"invitation to {channel}")
        self._joining.add(task)
        task.add_done_callback(self._joining.discard)

    async def stop(self) -> None:
        """Look at no more invitations."""
        for task in list(self._joining):
            task.cancel()
        await asyncio.gather(*self._joining, return_exceptions=True)

    async def _look(self, channel: str, by: str) -> None:
        try:
            said = await self._transport.get_metadata(channel, ChannelKey.TAGS.value)
            if self._tags & tags_of(said.get(ChannelKey.TAGS.value, "")):
                await self._transport.join_channel(channel)
                log.info("joined %s, to which %s invited", channel, by)
        except NotSent as refusal:
            log.info("cannot join %s, to which %s invited: %s", channel, by, refusal)


def tags_of(said: str) -> set[str]:
    """The tags in a value of metadata, which has them separated by commas."""
    return {tag.strip().casefold() for tag in said.split(",") if tag.strip()}
