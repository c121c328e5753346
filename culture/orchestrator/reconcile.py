"""Reconciliation after a start: completes open acts; git, processes and journal agree again.

The journal says which acts were intended and not done. Each can be repeated, so they are simply performed again: tasks
begin, reports are checked, ends are finished, shift changes and hires resume. Worktrees that belong to no task are
salvaged and removed. Members that still run are attached to; those that do not are restarted with their session.
``resume_pending`` also runs with every heartbeat: what failed because of a full disk is tried again.
"""

import logging
from collections.abc import Collection

from culture.lib.git import GitFailed
from culture.orchestrator.budget import TEAM
from culture.orchestrator.errors import NotHired
from culture.orchestrator.inbound import TeamInbound
from culture.orchestrator.journal.state import Act, TaskStage, TeamMember, TeamTask
from culture.orchestrator.members.hiring import MemberHiring
from culture.orchestrator.members.recovery import MemberRecovery
from culture.orchestrator.members.shift import Shift
from culture.orchestrator.members.worker_followup import WorkerFollowup
from culture.orchestrator.repository.salvage import salvage
from culture.orchestrator.repository.worktrees import InUse
from culture.orchestrator.tasks.task_end import TaskEnd
from culture.orchestrator.tasks.tasks import TeamTasks
from culture.orchestrator.team_context import TeamContext

log = logging.getLogger(__name__)

CHECK_IN = "The team's orchestrator was restarted. Check your channels, and go on where you were."


class Reconciler:
    """Resumes everything that the journal does not record as done."""

    def __init__(
        self,
        context: TeamContext,
        hiring: MemberHiring,
        tasks: TeamTasks,
        task_end: TaskEnd,
        inbound: TeamInbound,
        shift: Shift,
        recovery: MemberRecovery,
        followup: WorkerFollowup,
    ) -> None:
        self._context = context
        self._hiring = hiring
        self._tasks = tasks
        self._task_end = task_end
        self._shift = shift
        self._inbound = inbound
        self._recovery = recovery
        self._followup = followup

    async def clean_worktrees(self) -> None:
        """Salvage and remove the worktrees of this team that belong to no task any more."""
        context, state = self._context, self._context.store.state
        await context.worktrees.sweep()
        self._tasks.highest = await context.worktrees.highest_number(context.config.slug)
        begun = {entry.data["id"] for entry in state.pending(Act.WORKTREE)}
        live = {task.id for task in state.tasks.values() if not task.cleaned}
        for id in await context.worktrees.tasks() - live - begun:
            # Another team may work on the same repository at other times.
            if id.rpartition("-")[0] == context.config.slug:
                await self._clean_worktree(id)

    async def _clean_worktree(self, id: str) -> None:
        context, task = self._context, self._context.store.state.tasks.get(id)
        project, path = context.config.project_dir, context.worktrees.path_of(id)
        is_done = task is not None and task.stage is TaskStage.DONE
        try:
            salvaged = await salvage(project, path, id, "no task has it any more", is_done=is_done)
            if salvaged.must_stay:
                log.warning("%s stays: %s", path, salvaged.must_stay)
                return
            await context.worktrees.remove(id)
        except (InUse, GitFailed, OSError) as why:
            log.warning("%s stays: %s", path, why)
            return
        if task is not None and task.stays:
            context.store.done(Act.CLEANUP, id=id, ref=salvaged.ref or task.rescue)

    async def resume_all(self, hired_before: Collection[str]) -> None:
        """Resume everything unfinished after a start of the orchestrator, and each member.

        ``hired_before``: the nicks of members from before the start, who are prompted to check in.
        """
        context = self._context
        for task in context.store.state.live_tasks():
            self._tasks.begin(task.id)
        self.resume_pending()
        for member in context.store.state.members.values():
            works_on = context.store.state.tasks.get(member.task_id or "")
            is_over = works_on is not None and works_on.stage.is_over
            if not member.leaving and not is_over and not self._shift.is_open(member.nick):
                is_new = member.nick not in hired_before
                context.jobs.start(f"resume {member.nick}", self._resume(member, is_new))

    def resume_pending(self) -> None:
        """Start jobs for all open acts that no job performs: after a start, or after a full disk."""
        context = self._context
        for entry in context.store.state.pending(Act.TASK):
            self._tasks.accept(dict(entry.data))
        for entry in context.store.state.pending(Act.REPORT):
            self._task_end.check_report(entry.data)
        for task in context.store.state.tasks.values():
            if not task.stage.is_over:
                if not self._is_begun(task):
                    self._tasks.begin(task.id)
            elif not task.cleaned or f"over {task.id}" not in context.store.state.announced:
                self._task_end.finish(task.id)
        for entry in context.store.state.pending(Act.SHIFT):
            self._shift.resume(entry.data)
        for entry in context.store.state.pending(Act.WANTED):
            self._inbound.hire(entry.data)
        self._followup.follow_all()
        for member in context.store.state.members.values():
            if member.leaving and not self._shift.is_open(member.nick):
                context.jobs.start(f"retire {member.nick}", self._hiring.retire(member.nick, "was to go"))

    def _is_begun(self, task: TeamTask) -> bool:
        """Return whether a task has its worktree and manager, or waits because a budget is spent."""
        state = self._context.store.state
        manager = state.member(task.manager or "")
        is_worked_on = bool(task.worktree) and manager is not None and manager.hired
        return (is_worked_on and f"begun {task.id}" in state.announced) or bool(state.parked & {TEAM, task.id})

    async def _resume(self, member: TeamMember, is_new: bool) -> None:
        """Restart a member with its session and prompt it to check in, unless it is new.

        If that fails, recovery replaces the member.
        """
        context = self._context
        if member.task_id is not None:
            # The worktree must exist before the member that works in it.
            async with self._tasks.locks[member.task_id]:
                pass
        if not member.hired:
            try:
                await self._hiring.settle(member.nick)
            except NotHired as why:
                await context.complain(f"lost {member.nick}", f"{member.nick} did not come: {why}")
                await self._followup.report_lost(member, str(why))
                return
        elif await self._recovery.bring_back(member, "the orchestrator was away") and not is_new:
            await self._hiring.tell(member.nick, f"checkin-{member.nick}-{context.store.state.number}", CHECK_IN)
        if member.wanted:
            await self._inbound.confirm_hire(member, member.channels[0])
