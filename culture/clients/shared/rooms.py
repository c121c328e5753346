"""Rooms that organise themselves: an agent joins what it is invited to when they have a tag in common."""

import asyncio
import logging
from collections.abc import Callable, Iterable

from culture.protocol.names import fold
from culture.protocol.vocabulary import ChannelKey
from culture.transport import ChannelMember, IRCTransport, NotSent

log = logging.getLogger(__name__)

MOST_JOINS = 20
"""So many invitations are looked at at once; further ones wait for another."""


class Rooms:
    """Answers invitations as the agent's configuration says."""

    def __init__(
        self, transport: IRCTransport, tags: Iterable[str], *, join: bool, vouched: Callable[[ChannelMember], bool]
    ) -> None:
        self._transport = transport
        self._vouched = vouched
        self._tags = {tag.casefold() for tag in tags}
        self._join = join
        self._joining: dict[asyncio.Task[None], None] = {}

    def invited(self, channel: str, by: ChannelMember | None) -> None:
        """Somebody, or without a member the server, invites the agent."""
        if not self._join or len(self._joining) >= MOST_JOINS:
            log.info("invited to %s by %s; not joined", channel, _name(by))
            return
        task = asyncio.create_task(self._look(channel, by), name=f"invitation to {channel}")
        self._joining[task] = None
        task.add_done_callback(self._joining.pop)

    async def stop(self) -> None:
        """Look at no more invitations."""
        for task in list(self._joining):
            task.cancel()
        await asyncio.gather(*self._joining, return_exceptions=True)

    async def _look(self, channel: str, by: ChannelMember | None) -> None:
        try:
            if by is not None and not await self._is_vouched(by):
                log.info("invited to %s by %s, for whom nobody vouches; not joined", channel, by.nick)
                return
            said = await self._transport.get_metadata(channel, ChannelKey.TAGS.value)
            if self._tags & tags_of(said.get(ChannelKey.TAGS.value, "")):
                await self._transport.join_channel(channel)
                log.info("joined %s, to which %s invited", channel, _name(by))
        except NotSent as refusal:
            log.info("cannot join %s, to which %s invited: %s", channel, _name(by), refusal)

    async def _is_vouched(self, by: ChannelMember) -> bool:
        """Whether somebody may have the agent join: an INVITE tells no class, so a server of ours is asked."""
        if self._vouched(by):
            return True
        found = await self._transport.send_who(by.nick)
        return any(fold(member.nick) == fold(by.nick) and self._vouched(member) for member in found)


def _name(by: ChannelMember | None) -> str:
    return by.nick if by is not None else "the server"


def tags_of(said: str) -> set[str]:
    """The tags in a value of metadata, which has them separated by commas."""
    return {tag.strip().casefold() for tag in said.split(",") if tag.strip()}
