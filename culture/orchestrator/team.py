"""The team: builds the orchestrator's objects and runs its loops."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from culture.orchestrator.budget import Budget, UsageWatch
from culture.orchestrator.errors import NotHired
from culture.orchestrator.heartbeat import Heartbeat, Judge
from culture.orchestrator.inbound import TeamInbound
from culture.orchestrator.journal.journal import JournalEntry, Phase
from culture.orchestrator.journal.state import Act, TeamMember
from culture.orchestrator.members.hiring import MemberHiring
from culture.orchestrator.members.members import ManagedAgent
from culture.orchestrator.members.recovery import MemberRecovery
from culture.orchestrator.members.shift import Shift
from culture.orchestrator.members.worker_followup import WorkerFollowup
from culture.orchestrator.prompts import load
from culture.orchestrator.reconcile import Reconciler
from culture.orchestrator.tasks.task_end import TaskEnd
from culture.orchestrator.tasks.tasks import TeamTasks
from culture.orchestrator.team_context import TeamContext
from culture.transport import Message
from culture.wiki.names import SPRINT_STATE

log = logging.getLogger(__name__)

AGAIN = 5.0
"""Pause (s) before retrying after a full disk."""

FIRST = """You are on line. Read the wiki page `{page}` and the decisions there, if there are any, and say in a sentence
in {channel} that you are here."""


class Team:
    """A team's objects, connected with each other; ``running`` runs their loops."""

    def __init__(
        self, context: TeamContext, judge: Judge | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.context = context
        self.hiring = MemberHiring(context)
        self.budget = Budget(context, self.hiring)
        self.tasks = TeamTasks(context, self.hiring)
        self.task_end = TaskEnd(context, self.hiring, self.tasks)
        self.followup = WorkerFollowup(context, self.hiring)
        self.inbound = TeamInbound(context, self.hiring, self.tasks, self.task_end, self.followup)
        self.shift = Shift(context, self.hiring, self.tasks, self.followup)
        self.recovery = MemberRecovery(context, self.hiring, self.shift, self.followup, self.task_end.give_up)
        self.tasks.on_hopeless = self.task_end.give_up
        self.reconciler = Reconciler(
            context, self.hiring, self.tasks, self.task_end, self.inbound, self.shift, self.recovery, self.followup
        )
        self.heartbeat = Heartbeat(
            context, self.hiring, self.budget, self.shift, self.recovery, self.reconciler.resume_pending, judge, clock
        )
        context.rooms.on_spoke = self.heartbeat.note_activity
        self.usage_watch = UsageWatch(context, self.heartbeat.note_usage)
        context.store.on_change = self._on_entry

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the team's loops during the block; its members keep running after the block."""
        context = self.context
        hired_before = [member.nick for member in context.store.state.members.values() if member.hired]
        await self.reconciler.clean_worktrees()
        loops: list[asyncio.Task[None]] = []
        try:
            has_been_here = bool(hired_before) or context.rooms.has_been_here
            if has_been_here:
                # Missed messages may exceed the queue, so reading starts before connecting.
                loops.append(asyncio.create_task(self._read_messages(), name="inbound"))
            await context.rooms.start()
            await self.spawn_em()
            await self.reconciler.resume_all(hired_before)
            self.usage_watch.watch_members()
            if not has_been_here:
                loops.append(asyncio.create_task(self._read_messages(), name="inbound"))
            loops.append(asyncio.create_task(self._beat(), name="heartbeat"))
            yield
        finally:
            for loop in loops:
                loop.cancel()
            await asyncio.gather(*loops, return_exceptions=True)
            await self.usage_watch.stop()
            await context.jobs.stop()
            await context.rooms.stop("the team's orchestrator stops")

    async def spawn_em(self) -> TeamMember:
        """Start the engineering manager (EM), hiring it at the first start, and return it."""
        context, state = self.context, self.context.store.state
        if state.em is not None:
            return await self.hiring.settle(state.em.nick)
        order = FIRST.format(page=SPRINT_STATE, channel=context.config.project_channel)
        return await self.hiring.hire("em", None, order, name=context.config.em_name)

    async def spawn_agent(self, role: str, task_id: str, text: str, by: str = "a person") -> TeamMember:
        """Hire a worker for a task and return it; ``NotHired`` if there is no such task.

        ``role``: such as ``implementer``; ``text``: the worker's instruction; ``by``: who requested it.
        """
        if task_id not in self.context.store.state.tasks:
            raise NotHired(f"there is no task {task_id}")
        member = await self.tasks.hire(task_id, role, text, by)
        self.followup.follow(member)
        return member

    async def allow(self, id: str, usd: float | None = None, tokens: int | None = None) -> None:
        """Set the total budget of ``id`` (a task or the team) as a person commanded.

        ``usd``: dollars; None: no limit. Members that were paused for a spent budget resume if it allows.
        """
        self.context.store.done(Act.ALLOWANCE, id=id, usd=usd, tokens=tokens)

        await self.budget.enforce()

    async def dismiss(self, member: TeamMember) -> None:
        """Retire a member because a person commanded it; ``NotHired`` for the EM, who stays."""
        if member.role == "em":
            raise NotHired("the EM stays; `culture team down` ends everybody")
        await self.hiring.retire(member.nick, "a person said so")
        await self.followup.report_lost(member, "a person said so")

    @property
    def agents(self) -> dict[str, ManagedAgent]:
        """Return the runtime objects of the members (session, task, role), by name."""
        return self.context.agents

    def _load_prompt(self, role: str) -> str:
        """Return the text of a role's prompt, with its placeholders not filled in."""
        return load(self.context.config.project_dir, role, {})

    def _mcp_servers(self, nick: str) -> dict[str, dict[str, object]]:
        """Return the MCP servers of the member with this nick, by name."""
        return self.context.roster.mcp_servers(nick)

    def _on_entry(self, entry: JournalEntry) -> None:
        """Begin to watch the usage of a new member when the journal records its hire as done."""
        if entry.what == Act.HIRE and entry.phase is Phase.DONE:
            self.usage_watch.watch_members()

    async def _beat(self) -> None:
        while True:
            try:
                await self.heartbeat.run()
            except Exception:
                log.exception("the heartbeat failed")
                await asyncio.sleep(self.context.config.heartbeat)

    async def _read_messages(self) -> None:
        rooms = self.context.rooms
        while True:
            message = await rooms.next()
            await self._handle(message)
            try:
                rooms.mark_handled()
            except OSError as error:
                log.error("the read cursor was not stored: %s", error)

    async def _handle(self, message: Message) -> None:
        """Handle a message; try again after a transient error such as a full disk."""
        while True:
            try:
                await self.inbound.handle(message)
                return
            except OSError as error:
                log.error("message %s from %s has to wait: %s", message.msgid, message.sender, error)
            except Exception:
                log.exception("handling message %s from %s failed", message.msgid, message.sender)
                return
            await asyncio.sleep(AGAIN)
