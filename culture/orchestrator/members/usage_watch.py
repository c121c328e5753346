"""Learns of each answer of a member's model what it has used, so that budgets hold within a turn.

Each member's daemon is asked what it has used, and holds the request open until that has changed (`usage`). A member is
watched from its start to its end; after a restart of the orchestrator the heartbeat takes up all who are there.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from culture.orchestrator.errors import NoAnswer
from culture.orchestrator.journal.state import TeamMember
from culture.orchestrator.parts import TeamParts

log = logging.getLogger(__name__)

HELD = 600.0
"""Seconds that a daemon may hold a request open."""
_MARGIN = 15.0
_PAUSE = 5.0
"""Seconds until a daemon that did not answer is asked again."""


class UsageWatch:
    """One task for each member."""

    def __init__(self, parts: TeamParts, used: Callable[[TeamMember], Awaitable[object]]) -> None:
        self._parts = parts
        self._used = used
        """Called when a member has used more."""
        self._watching: dict[str, asyncio.Task[None]] = {}

    def begin(self) -> None:
        """Watch everybody who is there and is not watched yet."""
        for member in self._parts.book.state.members.values():
            if member.hired and not member.leaving and member.nick not in self._watching:
                task = asyncio.create_task(self._watch(member.nick), name=f"usage of {member.nick}")
                self._watching[member.nick] = task

    async def stop(self) -> None:
        """Watch nobody any more."""
        watching = list(self._watching.values())
        for task in watching:
            task.cancel()
        await asyncio.gather(*watching, return_exceptions=True)

    async def _watch(self, nick: str) -> None:
        mark = None
        try:
            while (member := self._parts.book.state.member(nick)) is not None and not member.leaving:
                mark = await self._next(member, mark)
        finally:
            del self._watching[nick]

    async def _next(self, member: TeamMember, mark: str | None) -> str | None:
        """Wait until a member has used more than what a mark stands for; the new mark."""
        since = {"since": mark} if mark else {}
        try:
            told = await self._parts.daemons.call(member.nick, "usage", HELD + _MARGIN, timeout=HELD, **since)
        except NoAnswer as why:
            # It is not up yet, or was started before an upgrade; the heartbeat looks at it as well.
            log.debug("%s: %s", member.nick, why)
            await asyncio.sleep(_PAUSE)
            return None
        try:
            await self._used(member)
        except Exception:
            log.exception("what %s has used was not looked at", member.nick)
            await asyncio.sleep(_PAUSE)
        return str(told.get("mark"))
