"""Watches the members' usage, so that budgets hold within a turn.

Each member's daemon is sent a `usage` request, which it holds open until the usage has changed (long polling). A member
is watched from its start to its end; after a restart of the orchestrator the heartbeat resumes watching.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from culture.orchestrator.errors import NoAnswer
from culture.orchestrator.journal.state import TeamMember
from culture.orchestrator.team_context import TeamContext

log = logging.getLogger(__name__)

HOLD_TIME = 600.0
"""Seconds that a daemon may hold a request open."""
_MARGIN = 15.0
_PAUSE = 5.0
"""Seconds until a daemon that did not answer is asked again."""


class UsageWatch:
    """Runs one asyncio task per member that watches the member's usage."""

    def __init__(self, context: TeamContext, on_usage: Callable[[TeamMember], Awaitable[object]]) -> None:
        self._context = context
        self._on_usage = on_usage
        """Called when a member has used more."""
        self._watching: dict[str, asyncio.Task[None]] = {}

    def watch_members(self) -> None:
        """Start watching every hired member that is not watched yet."""
        for member in self._context.store.state.members.values():
            if member.hired and not member.leaving and member.nick not in self._watching:
                task = asyncio.create_task(self._watch(member.nick), name=f"usage of {member.nick}")
                self._watching[member.nick] = task

    async def stop(self) -> None:
        """Stop watching all members."""
        watching = list(self._watching.values())
        for task in watching:
            task.cancel()
        await asyncio.gather(*watching, return_exceptions=True)

    async def _watch(self, nick: str) -> None:
        mark = None
        try:
            while (member := self._context.store.state.member(nick)) is not None and not member.leaving:
                mark = await self._next(member, mark)
        finally:
            del self._watching[nick]

    async def _next(self, member: TeamMember, mark: str | None) -> str | None:
        """Wait until a member's usage exceeds that at ``mark``, handle it, and return the new mark.

        A mark is the daemon's position in the usage; None if the daemon did not answer.
        """
        since = {"since": mark} if mark else {}
        try:
            usage = await self._context.daemons.call(
                member.nick, "usage", HOLD_TIME + _MARGIN, timeout=HOLD_TIME, **since
            )
        except NoAnswer as why:
            # It is starting, or runs a version without `usage`; the heartbeat reads the usage too.
            log.debug("%s: %s", member.nick, why)
            await asyncio.sleep(_PAUSE)
            return None
        try:
            await self._on_usage(member)
        except Exception:
            log.exception("handling the usage of %s failed", member.nick)
            await asyncio.sleep(_PAUSE)
        return str(usage.get("mark"))
