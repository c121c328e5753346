"""A member that is gone comes back with its session; one that does not come back is followed by another."""

import logging
import time
from collections import defaultdict, deque
from collections.abc import Callable

from culture.orchestrator.errors import NotHired
from culture.orchestrator.journal.state import TeamMember
from culture.orchestrator.members.hiring import MemberHiring
from culture.orchestrator.members.shift import Shift
from culture.orchestrator.members.worker_followup import Following
from culture.orchestrator.parts import TeamParts

log = logging.getLogger(__name__)

WINDOW = 600.0
"""So often as ``limits.attempts`` within this time; then somebody else is tried."""


class MemberRecovery:
    """Tries a few times, then hands over."""

    def __init__(
        self,
        parts: TeamParts,
        hiring: MemberHiring,
        shift: Shift,
        following: Following,
        give_up: Callable[[str, str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._parts = parts
        self._hiring = hiring
        self._shift = shift
        self._following = following
        self._give_up = give_up
        """Told of a task that nobody can work on, and why."""
        self._clock = clock
        self._tries: defaultdict[str, deque[float]] = defaultdict(deque)

    async def bring_back(self, member: TeamMember, why: str) -> bool:
        """Start it again in its worktree, with its session; whether it is back."""
        if not self._parts.daemons.is_running(member.nick) and not self._may_try(member.nick):
            await self.replace(member, f"{why}, again and again")
            return False
        try:
            await self._hiring.settle(member.nick)
        except NotHired as wrong:
            await self.replace(member, f"{why}: {wrong}")
            return False
        log.info("%s is there: %s", member.nick, why)
        return True

    async def replace(self, member: TeamMember, why: str) -> None:
        """Have it followed by somebody else, and tell what happened (O18, O30); who was let go is not missed."""
        now = self._parts.book.state.member(member.nick)
        if now is None or now.leaving:
            return
        reason = why.splitlines()[0]
        key = f"replaced {member.order_key} {self._parts.book.state.shifts}"
        await self._parts.complain(key, f"{member.nick} ({member.role}) is replaced: {reason}")
        if self._may_try(f"{member.task_id or ''} {member.role}"):
            self._shift.begin(member, reason, asked=False)
        elif member.task_id is not None and member.role == "manager":
            self._give_up(member.task_id, reason)
        elif member.role != "em":
            await self._hiring.retire(member.nick, reason)
            await self._following.lost(member, reason)

    def _may_try(self, what: str) -> bool:
        tries, now = self._tries[what], self._clock()
        while tries and tries[0] < now - WINDOW:
            tries.popleft()
        if len(tries) >= self._parts.config.limits.attempts:
            return False
        tries.append(now)
        return True
