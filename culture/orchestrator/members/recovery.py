"""Recovery: restarts a member whose process is gone, with its session, or replaces it."""

import logging
import time
from collections import defaultdict, deque
from collections.abc import Callable

from culture.orchestrator.errors import NotHired
from culture.orchestrator.journal.state import TeamMember
from culture.orchestrator.members.hiring import MemberHiring
from culture.orchestrator.members.shift import Shift
from culture.orchestrator.members.worker_followup import WorkerFollowup
from culture.orchestrator.team_context import TeamContext

log = logging.getLogger(__name__)

WINDOW = 600.0
"""Seconds within which ``limits.attempts`` restarts are made; then the member is replaced."""


class MemberRecovery:
    """Restarts members whose processes are gone, a limited number of times, then replaces them."""

    def __init__(
        self,
        context: TeamContext,
        hiring: MemberHiring,
        shift: Shift,
        followup: WorkerFollowup,
        give_up: Callable[[str, str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._context = context
        self._hiring = hiring
        self._shift = shift
        self._followup = followup
        self._give_up = give_up
        """Called with a task that nobody can work on, and the reason."""
        self._clock = clock
        self._tries: defaultdict[str, deque[float]] = defaultdict(deque)

    async def bring_back(self, member: TeamMember, why: str) -> bool:
        """Restart a member whose process is gone, in its worktree; return whether it runs.

        The member continues its session. If that fails, or was tried too often, the member is replaced. ``why``: what
        happened to the process, for the report.
        """
        if not self._context.daemons.is_running(member.nick) and not self._may_try(member.nick):
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
        """Report that a member is lost, and hire another in its place.

        Nothing is done if the member is retiring. After too many replacements the task is given up, or the worker
        retired. ``why``: what happened to the member, for the report.
        """
        now = self._context.store.state.member(member.nick)
        if now is None or now.leaving:
            return
        reason = why.splitlines()[0]
        key = f"replaced {member.order_key} {self._context.store.state.shifts}"
        await self._context.complain(key, f"{member.nick} ({member.role}) is replaced: {reason}")
        if self._may_try(f"{member.task_id or ''} {member.role}"):
            self._shift.begin(member, reason, asked=False)
        elif member.task_id is not None and member.role == "manager":
            self._give_up(member.task_id, reason)
        elif member.role != "em":
            await self._hiring.retire(member.nick, reason)
            await self._followup.report_lost(member, reason)

    def _may_try(self, what: str) -> bool:
        tries, now = self._tries[what], self._clock()
        while tries and tries[0] < now - WINDOW:
            tries.popleft()
        if len(tries) >= self._context.config.limits.attempts:
            return False
        tries.append(now)
        return True
