"""The team: an EM, managers and workers, kept at work. The founding text calls this the supervisor."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from culture.orchestrator.budget import Budget
from culture.orchestrator.errors import NotHired
from culture.orchestrator.heartbeat import Heartbeat, Judge
from culture.orchestrator.inbound import TeamInbound
from culture.orchestrator.journal.journal import JournalEntry, Phase
from culture.orchestrator.journal.state import TeamMember, What
from culture.orchestrator.members.hiring import MemberHiring
from culture.orchestrator.members.members import ManagedAgent
from culture.orchestrator.members.recovery import MemberRecovery
from culture.orchestrator.members.shift import Shift
from culture.orchestrator.members.usage_watch import UsageWatch
from culture.orchestrator.members.worker_followup import Following
from culture.orchestrator.parts import TeamParts
from culture.orchestrator.prompts import load
from culture.orchestrator.reconcile import Reconciling
from culture.orchestrator.tasks.task_end import Finishing
from culture.orchestrator.tasks.tasks import TeamTasks
from culture.transport import Message
from culture.wiki.names import SPRINT_STATE

log = logging.getLogger(__name__)

AGAIN = 5.0
"""So long after the disk was full it is tried again."""

FIRST = """You are on line. Read the wiki page `{page}` and the decisions there, if there are any, and say in a sentence
in {channel} that you are here."""


class Team:
    """Put together from its parts; ``running`` is its life."""

    def __init__(
        self, parts: TeamParts, judge: Judge | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.parts = parts
        self.hiring = MemberHiring(parts)
        self.budget = Budget(parts, self.hiring)
        self.tasks = TeamTasks(parts, self.hiring)
        self.finishing = Finishing(parts, self.hiring, self.tasks)
        self.following = Following(parts, self.hiring)
        self.hearing = TeamInbound(parts, self.hiring, self.tasks, self.finishing, self.following)
        self.shift = Shift(parts, self.hiring, self.tasks, self.following)
        self.recovery = MemberRecovery(parts, self.hiring, self.shift, self.following, self.finishing.give_up)
        self.tasks.on_hopeless = self.finishing.give_up
        self.reconciling = Reconciling(
            parts, self.hiring, self.tasks, self.finishing, self.hearing, self.shift, self.recovery, self.following
        )
        self.heartbeat = Heartbeat(
            parts, self.hiring, self.budget, self.shift, self.recovery, self.reconciling.take_up, judge, clock
        )
        parts.rooms.on_said = self.heartbeat.heard
        self.usage_watch = UsageWatch(parts, self.heartbeat.note_usage)
        parts.book.on_change = self._note_entry

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The team at work; afterwards its members go on by themselves."""
        parts = self.parts
        were_there = [member.nick for member in parts.book.state.members.values() if member.hired]
        await self.reconciling.sort_out_worktrees()
        loops: list[asyncio.Task[None]] = []
        try:
            has_been_here = bool(were_there) or parts.rooms.has_been_here
            if has_been_here:
                # More may have been said meanwhile than can wait; at the first start nothing is missed.
                loops.append(asyncio.create_task(self._hear(), name="hearing"))
            await parts.rooms.start()
            await self.spawn_em()
            await self.reconciling.go_on(were_there)
            self.usage_watch.begin()
            if not has_been_here:
                loops.append(asyncio.create_task(self._hear(), name="hearing"))
            loops.append(asyncio.create_task(self._beat(), name="heartbeat"))
            yield
        finally:
            for loop in loops:
                loop.cancel()
            await asyncio.gather(*loops, return_exceptions=True)
            await self.usage_watch.stop()
            await parts.jobs.stop()
            await parts.rooms.stop("the team's orchestrator stops")

    async def spawn_em(self) -> TeamMember:
        """The EM, who stays."""
        parts, state = self.parts, self.parts.book.state
        if state.em is not None:
            return await self.hiring.settle(state.em.nick)
        order = FIRST.format(page=SPRINT_STATE, channel=parts.config.project_channel)
        return await self.hiring.hire("em", None, order, name=parts.config.em_name)

    async def spawn_agent(self, role: str, task_id: str, text: str, by: str = "a person") -> TeamMember:
        """A worker for a task."""
        if task_id not in self.parts.book.state.tasks:
            raise NotHired(f"there is no task {task_id}")
        member = await self.tasks.hire(task_id, role, text, by)
        self.following.follow(member)
        return member

    async def allow(self, id: str, usd: float | None = None, tokens: int | None = None) -> None:
        """A person says what a task, or the team, may use in all."""
        self.parts.book.done(What.ALLOWANCE, id=id, usd=usd, tokens=tokens)
        await self.budget.look()

    async def dismiss(self, member: TeamMember) -> None:
        """Somebody goes at a person's word."""
        if member.role == "em":
            raise NotHired("the EM stays; `culture team down` ends everybody")
        await self.hiring.retire(member.nick, "a person said so")
        await self.following.lost(member, "a person said so")

    @property
    def agents(self) -> dict[str, ManagedAgent]:
        """The members that are there, by name."""
        return self.parts.agents

    def _load_prompt(self, role: str) -> str:
        """What a role is told, its places still open."""
        return load(self.parts.config.project_dir, role, {})

    def _mcp_servers(self, nick: str) -> dict[str, dict[str, object]]:
        """The MCP servers of a member."""
        return self.parts.roster.mcp_servers(nick)

    def _note_entry(self, entry: JournalEntry) -> None:
        """Watch what somebody new uses, from its first turn on."""
        if entry.what == What.HIRE and entry.phase is Phase.DONE:
            self.usage_watch.begin()

    async def _beat(self) -> None:
        while True:
            try:
                await self.heartbeat.run()
            except Exception:
                log.exception("the heartbeat stumbled")
                await asyncio.sleep(self.parts.config.heartbeat)

    async def _hear(self) -> None:
        rooms = self.parts.rooms
        while True:
            message = await rooms.next()
            await self._act_upon(message)
            try:
                rooms.acted()
            except OSError as error:
                log.error("how far was heard is not written down: %s", error)

    async def _act_upon(self, message: Message) -> None:
        """What gets better by itself, such as a full disk, is tried again."""
        while True:
            try:
                await self.hearing.hear(message)
                return
            except OSError as error:
                log.error("%s from %s has to wait: %s", message.msgid, message.sender, error)
            except Exception:
                log.exception("%s from %s was not acted upon", message.msgid, message.sender)
                return
            await asyncio.sleep(AGAIN)
