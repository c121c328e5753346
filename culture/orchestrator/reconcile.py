"""After a start: what was left half-way is brought to its end, and git, processes and journal agree again."""

import logging
from collections.abc import Collection

from culture.lib.git import GitFailed
from culture.orchestrator.budget import TEAM
from culture.orchestrator.errors import NotHired
from culture.orchestrator.inbound import TeamInbound
from culture.orchestrator.journal.state import TaskStage, TeamMember, TeamTask, What
from culture.orchestrator.members.hiring import MemberHiring
from culture.orchestrator.members.recovery import MemberRecovery
from culture.orchestrator.members.shift import Shift
from culture.orchestrator.members.worker_followup import Following
from culture.orchestrator.parts import TeamParts
from culture.orchestrator.repository.salvage import salvage
from culture.orchestrator.repository.worktrees import InUse
from culture.orchestrator.tasks.task_end import Finishing
from culture.orchestrator.tasks.tasks import TeamTasks

log = logging.getLogger(__name__)

CHECK_IN = "The team's orchestrator was restarted. Check your channels, and go on where you were."


class Reconciling:
    """Looks at the state, and does again whatever is not known to be done."""

    def __init__(
        self,
        parts: TeamParts,
        hiring: MemberHiring,
        tasks: TeamTasks,
        finishing: Finishing,
        hearing: TeamInbound,
        shift: Shift,
        recovery: MemberRecovery,
        following: Following,
    ) -> None:
        self._parts = parts
        self._hiring = hiring
        self._tasks = tasks
        self._finishing = finishing
        self._shift = shift
        self._hearing = hearing
        self._recovery = recovery
        self._following = following

    async def sort_out_worktrees(self) -> None:
        """Worktrees of this team that belong to no task any more are kept under a ref and removed."""
        parts, state = self._parts, self._parts.book.state
        await parts.worktrees.sweep()
        self._tasks.given = await parts.worktrees.highest(parts.config.slug)
        begun = {entry.data["id"] for entry in state.pending(What.WORKTREE)}
        live = {task.id for task in state.tasks.values() if not task.cleaned}
        for id in await parts.worktrees.tasks() - live - begun:
            # Another team may work on the same repository at other times.
            if id.rpartition("-")[0] == parts.config.slug:
                await self._sort_out(id)

    async def _sort_out(self, id: str) -> None:
        parts, task = self._parts, self._parts.book.state.tasks.get(id)
        project, path = parts.config.project_dir, parts.worktrees.path_of(id)
        is_done = task is not None and task.stage is TaskStage.DONE
        try:
            kept = await salvage(project, path, id, "no task has it any more", is_done=is_done)
            if kept.must_stay:
                log.warning("%s stays: %s", path, kept.must_stay)
                return
            await parts.worktrees.remove(id)
        except (InUse, GitFailed, OSError) as why:
            log.warning("%s stays: %s", path, why)
            return
        if task is not None and task.stays:
            parts.book.done(What.CLEANUP, id=id, ref=kept.ref or task.rescue)

    async def go_on(self, were_there: Collection[str]) -> None:
        """Take up everything that is not finished; who was there before is told to look around."""
        parts = self._parts
        for task in parts.book.state.live_tasks():
            self._tasks.begin(task.id)
        self.take_up()
        for member in parts.book.state.members.values():
            works_on = parts.book.state.tasks.get(member.task_id or "")
            is_over = works_on is not None and works_on.stage.is_over
            if not member.leaving and not is_over and not self._shift.is_open(member.nick):
                is_new = member.nick not in were_there
                parts.jobs.start(f"resume {member.nick}", self._resume(member, is_new))

    def take_up(self) -> None:
        """Begin again whatever was intended and nobody is at, such as after a start or when the disk was full."""
        parts = self._parts
        for entry in parts.book.state.pending(What.TASK):
            self._tasks.taken(dict(entry.data))
        for entry in parts.book.state.pending(What.REPORT):
            self._finishing.look_into(entry.data)
        for task in parts.book.state.tasks.values():
            if not task.stage.is_over:
                if not self._is_begun(task):
                    self._tasks.begin(task.id)
            elif not task.cleaned or f"over {task.id}" not in parts.book.state.told:
                self._finishing.finish(task.id)
        for entry in parts.book.state.pending(What.SHIFT):
            self._shift.go_on(entry.data)
        for entry in parts.book.state.pending(What.WANTED):
            self._hearing.hire(entry.data)
        self._following.take_up()
        for member in parts.book.state.members.values():
            if member.leaving and not self._shift.is_open(member.nick):
                parts.jobs.start(f"retire {member.nick}", self._hiring.retire(member.nick, "was to go"))

    def _is_begun(self, task: TeamTask) -> bool:
        """Whether nothing is left to be done for it; who may not work is not begun with."""
        state = self._parts.book.state
        manager = state.member(task.manager or "")
        is_worked_on = bool(task.worktree) and manager is not None and manager.hired
        return (is_worked_on and f"begun {task.id}" in state.told) or bool(state.parked & {TEAM, task.id})

    async def _resume(self, member: TeamMember, is_new: bool) -> None:
        """Whoever was there goes on with their session and is told so; who does not come back is replaced (O18)."""
        parts = self._parts
        if member.task_id is not None:
            # First the worktree, then who works in it.
            async with self._tasks.turns[member.task_id]:
                pass
        if not member.hired:
            try:
                await self._hiring.settle(member.nick)
            except NotHired as why:
                await parts.complain(f"lost {member.nick}", f"{member.nick} did not come: {why}")
                await self._following.lost(member, str(why))
                return
        elif await self._recovery.bring_back(member, "the orchestrator was away") and not is_new:
            await self._hiring.tell(member.nick, f"checkin-{member.nick}-{parts.book.state.number}", CHECK_IN)
        if member.wanted:
            await self._hearing.welcome(member, member.channels[0])
