"""Taking on tasks, and bringing each as far as somebody works on it."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable

from culture.orchestrator.errors import NotHired, TeamFull
from culture.orchestrator.journal.state import TaskStage, TeamMember, TeamTask, What
from culture.orchestrator.members.hiring import MemberHiring
from culture.orchestrator.parts import TeamParts
from culture.orchestrator.repository.worktrees import branch_of
from culture.orchestrator.tasks.ledger import publish
from culture.wiki.names import plan

_ORDER = """Your task is {id}, from {by}:

{text}

Your folder is {worktree}, on the branch {branch}. Work on it as your instructions say: the plan goes to the wiki page
`{page}`, and {channel} is yours."""
_WORK = """{by} wants this of you, in {channel}:

{text}"""


class TeamTasks:
    """The tasks of a team; what is done to one is done one after the other."""

    def __init__(self, parts: TeamParts, hiring: MemberHiring) -> None:
        self._parts = parts
        self._hiring = hiring
        self.turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self.given = 0
        """The highest number of a task that git knows of; a team that was made anew does not take over its branch."""
        self._failures = Counter[str]()
        self.on_hopeless: Callable[[str, str], None] = lambda id, why: None
        """Told of a task that nobody can work on, and why."""

    def take(self, text: str, by: str, msgid: str = "") -> TeamTask:
        """Write down a new task; it is begun beside, as soon as there is room for it."""
        parts, state = self._parts, self._parts.book.state
        data = {"id": state.next_id(parts.config.slug, self.given), "text": text, "by": by, "msgid": msgid}
        parts.book.intend(What.TASK, **data)
        return self.taken(data)

    def taken(self, data: dict[str, str]) -> TeamTask:
        """It counts from here on."""
        self._parts.book.done(What.TASK, **data)
        task = self._parts.book.state.tasks[data["id"]]
        self.begin(task.id)
        return task

    def begin(self, id: str) -> None:
        """Go on with a task wherever it stands."""
        self._parts.jobs.start(f"task {id}", self._advance(id))

    def begin_queued(self) -> None:
        """A task is over: begin what has waited for room."""
        for task in self._parts.book.state.live_tasks():
            if task.stage is TaskStage.QUEUED:
                self.begin(task.id)

    async def _advance(self, id: str) -> None:
        parts = self._parts
        async with self.turns[id]:
            if parts.book.state.tasks[id].stage.is_over:
                return
            if why := self._why_queued(parts.book.state.tasks[id]):
                await self._queue(id, why)
                return
            task = await self._with_worktree(id)
            if not await parts.rooms.enter(task.channel):
                # Its manager would speak to nobody there; the next heartbeat tries again.
                return
            await parts.record.plan(task)
            if self._is_handed_over(id):
                return
            try:
                manager = await self._with_manager(task)
            except TeamFull as why:
                await self._tell_waits(f"no-room {id}", id, str(why))
                return
            except NotHired as why:
                await self._unmanaged(id, str(why))
                return
        await self._announce(parts.book.state.tasks[id], manager)

    def _why_queued(self, task: TeamTask) -> str:
        """Why a task is not begun yet; empty when it may be, or is."""
        state, most = self._parts.book.state, self._parts.config.limits.tasks
        if task.worktree:
            return ""
        if "team" in state.parked:
            return "the team's budget is spent, `culture team budget` shows it"
        if len(state.before(task.id)) >= most:
            return f"{most} tasks are under way, and limits.tasks allows no more"
        return ""

    async def _queue(self, id: str, why: str) -> None:
        """Write down that a task waits; whoever asked and the EM are told once."""
        parts, is_new = self._parts, self._parts.book.state.tasks[id].stage is not TaskStage.QUEUED
        if is_new:
            parts.book.done(What.QUEUED, id=id)
        await self._tell_waits(f"queued {id}", id, why)
        if is_new:
            await publish(parts, id)
            await parts.record.sprint(parts.book.state)

    async def _tell_waits(self, key: str, id: str, why: str) -> None:
        """Say that a task waits for room; the EM, who plans the sprint, has it as a prompt."""
        parts, task = self._parts, self._parts.book.state.tasks[id]
        text = f"[{id}] waits its turn: {why}. It begins by itself when there is room."
        reply = task.msgid.partition("/")[0]
        await parts.rooms.say_once(key, text, parts.config.standup_channel, reply_to=reply)
        await self._hiring.prompt_em(key.replace(" ", "-"), f"{text} Do not give it out again: {_title(task.text)}")

    async def _with_worktree(self, id: str) -> TeamTask:
        parts = self._parts
        if not parts.book.state.tasks[id].worktree:
            parts.book.intend(What.WORKTREE, id=id)
            made = await parts.worktrees.ensure(id, parts.main)
            parts.book.done(What.WORKTREE, id=id, path=str(made.path), branch=made.branch, base=made.base)
        else:
            await parts.worktrees.ensure(id, parts.main)
        return parts.book.state.tasks[id]

    async def _with_manager(self, task: TeamTask) -> TeamMember:
        manager = self._parts.book.state.member(task.manager or "")
        if manager is not None:
            return manager if manager.hired else await self._hiring.settle(manager.nick)
        await self._make_room(task)
        order = _ORDER.format(
            id=task.id,
            by=task.by,
            text=task.text,
            worktree=task.worktree,
            branch=branch_of(task.id),
            page=plan(task.id),
            channel=task.channel,
        )
        return await self._hiring.hire("manager", task, order)

    def _is_handed_over(self, id: str) -> bool:
        """Whether the manager is about to be followed by somebody whose name is chosen."""
        shifts = self._parts.book.state.pending(What.SHIFT)
        return any(entry.data["task"] == id and entry.data["role"] == "manager" for entry in shifts)

    async def _unmanaged(self, id: str, why: str) -> None:
        """It is tried again with the next heartbeats, and then given up."""
        self._failures[id] += 1
        await self._parts.complain(f"unmanaged {id} {self._failures[id]}", f"[{id}] has no manager: {why}")
        if self._failures[id] >= self._parts.config.limits.attempts:
            self.on_hopeless(id, f"nobody could be hired: {why}")

    async def _announce(self, task: TeamTask, manager: TeamMember) -> None:
        parts = self._parts
        text = f"[{task.id}] {manager.name} takes it on, in {task.channel}: {_title(task.text)}"
        reply = task.msgid.partition("/")[0]
        await parts.rooms.say_once(f"begun {task.id}", text, parts.config.standup_channel, reply_to=reply)
        await publish(parts, task.id)
        await parts.record.sprint(parts.book.state)

    async def hire(self, id: str, role: str, text: str, by: str, msgid: str = "") -> TeamMember:
        """A worker for a task; one that has finished makes room where there is none."""
        parts = self._parts
        async with self.turns[id]:
            task = parts.book.state.tasks[id]
            if task.stage.is_over:
                raise NotHired(f"{id} is over")
            if not task.worktree:
                raise NotHired(f"{id} has no worktree yet")
            await self._make_room(task)
            return await self._hiring.hire(role, task, _WORK.format(by=by, channel=task.channel, text=text), msgid)

    async def _make_room(self, task: TeamTask) -> None:
        """Whoever has finished goes where there is no room for somebody new: of this task, else of any."""
        state, limits = self._parts.book.state, self._parts.config.limits
        workers = [member for member in state.team_of(task.id) if member.role != "manager"]
        is_crowded = len(state.members) >= limits.members
        if len(workers) < limits.per_task and not is_crowded:
            return
        others = [each for each in state.live_tasks() if each.id != task.id] if is_crowded else []
        for each in (task, *others):
            for member in await self._hiring.finished_workers(each):
                await self._hiring.retire(member.nick, "makes room")
                return


def _title(text: str) -> str:
    return " ".join(text.split())[:200]
