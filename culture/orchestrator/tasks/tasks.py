"""Accepts tasks, and brings each to the point where a manager works on it."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable

from culture.orchestrator.errors import NotHired, TeamFull
from culture.orchestrator.journal.state import Act, TaskStage, TeamMember, TeamTask
from culture.orchestrator.members.hiring import MemberHiring
from culture.orchestrator.repository.worktrees import branch_of
from culture.orchestrator.tasks.ledger import publish_task
from culture.orchestrator.team_context import TeamContext
from culture.wiki.names import plan

_ORDER = """Your task is {id}, from {by}:

{text}

Your folder is {worktree}, on the branch {branch}. Work on it as your instructions say: the plan goes to the wiki page
`{page}`, and {channel} is yours."""
_WORK = """{by} wants this of you, in {channel}:

{text}"""


class TeamTasks:
    """The tasks of a team; a lock per task keeps operations on it from running at once."""

    def __init__(self, context: TeamContext, hiring: MemberHiring) -> None:
        self._context = context
        self._hiring = hiring
        self.locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self.highest = 0
        """Highest task number in git: a team set up again does not reuse an old branch."""
        self._failures = Counter[str]()
        self.on_hopeless: Callable[[str, str], None] = lambda id, why: None
        """Called with a task that nobody can work on, and the reason."""

    def take(self, text: str, by: str, msgid: str = "") -> TeamTask:
        """Record a new task and return it; begin it in the background as soon as the limits allow.

        ``text``: what is to be done; ``by``: who requested it; ``msgid``: the message that did.
        """
        context, state = self._context, self._context.store.state
        data = {"id": state.next_id(context.config.slug, self.highest), "text": text, "by": by, "msgid": msgid}
        context.store.intend(Act.TASK, **data)
        return self.accept(data)

    def accept(self, data: dict[str, str]) -> TeamTask:
        """Record in the journal that a requested task is accepted, begin it, and return it.

        ``data``: the journal's data of the request.
        """
        self._context.store.done(Act.TASK, **data)
        task = self._context.store.state.tasks[data["id"]]
        self.begin(task.id)
        return task

    def begin(self, id: str) -> None:
        """Begin a task in the background; also resumes a beginning that a crash interrupted."""
        self._context.jobs.start(f"task {id}", self._advance(id))

    def begin_queued(self) -> None:
        """Begin the queued tasks that the limits allow, after another one has ended."""
        for task in self._context.store.state.live_tasks():
            if task.stage is TaskStage.QUEUED:
                self.begin(task.id)

    async def _advance(self, id: str) -> None:
        context = self._context
        async with self.locks[id]:
            if context.store.state.tasks[id].stage.is_over:
                return
            if why := self._why_queued(context.store.state.tasks[id]):
                await self._queue(id, why)
                return
            task = await self._ensure_worktree(id)
            if not await context.rooms.join(task.channel):
                # Without the orchestrator in its channel the manager's lines are lost; the next heartbeat retries.
                return
            await context.wiki.create_plan_page(task)
            if self._is_in_shift_change(id):
                return
            try:
                manager = await self._ensure_manager(task)
            except TeamFull as why:
                await self._announce_waiting(f"no-room {id}", id, str(why))
                return
            except NotHired as why:
                await self._count_failure(id, str(why))
                return
        await self._announce(context.store.state.tasks[id], manager)

    def _why_queued(self, task: TeamTask) -> str:
        """Return why a task has to wait; "" if it may begin or has begun."""
        state, most = self._context.store.state, self._context.config.limits.tasks
        if task.worktree:
            return ""
        if "team" in state.parked:
            return "the team's budget is spent, `culture team budget` shows it"
        if len(state.before(task.id)) >= most:
            return f"{most} tasks are under way, and limits.tasks allows no more"
        return ""

    async def _queue(self, id: str, why: str) -> None:
        """Record that a task has to wait, and announce that once, with the reason ``why``."""
        context, is_new = self._context, self._context.store.state.tasks[id].stage is not TaskStage.QUEUED
        if is_new:
            context.store.done(Act.QUEUED, id=id)
        await self._announce_waiting(f"queued {id}", id, why)
        if is_new:
            await publish_task(context, id)
            await context.wiki.update_sprint(context.store.state)

    async def _announce_waiting(self, key: str, id: str, why: str) -> None:
        """Announce that a task waits, with the reason ``why``, and prompt the EM; once per ``key``.

        The EM plans the order of the tasks.
        """
        context, task = self._context, self._context.store.state.tasks[id]
        text = f"[{id}] waits its turn: {why}. It begins by itself when there is room."
        reply = task.msgid.partition("/")[0]
        await context.rooms.say_once(key, text, context.config.standup_channel, reply_to=reply)
        await self._hiring.prompt_em(key.replace(" ", "-"), f"{text} Do not give it out again: {_title(task.text)}")

    async def _ensure_worktree(self, id: str) -> TeamTask:
        context = self._context
        if not context.store.state.tasks[id].worktree:
            context.store.intend(Act.WORKTREE, id=id)
            worktree = await context.worktrees.ensure(id, context.main)
            data = {"path": str(worktree.path), "branch": worktree.branch, "base": worktree.base}
            context.store.done(Act.WORKTREE, id=id, **data)
        else:
            await context.worktrees.ensure(id, context.main)
        return context.store.state.tasks[id]

    async def _ensure_manager(self, task: TeamTask) -> TeamMember:
        manager = self._context.store.state.member(task.manager or "")
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

    def _is_in_shift_change(self, id: str) -> bool:
        """Return whether the task's manager is being replaced by a successor with a chosen name."""
        shifts = self._context.store.state.pending(Act.SHIFT)
        return any(entry.data["task"] == id and entry.data["role"] == "manager" for entry in shifts)

    async def _count_failure(self, id: str, why: str) -> None:
        """Report that no manager could be hired, and why; after too many failures give up the task."""
        self._failures[id] += 1
        await self._context.complain(f"unmanaged {id} {self._failures[id]}", f"[{id}] has no manager: {why}")
        if self._failures[id] >= self._context.config.limits.attempts:
            self.on_hopeless(id, f"nobody could be hired: {why}")

    async def _announce(self, task: TeamTask, manager: TeamMember) -> None:
        context = self._context
        text = f"[{task.id}] {manager.name} takes it on, in {task.channel}: {_title(task.text)}"
        reply = task.msgid.partition("/")[0]
        await context.rooms.say_once(f"begun {task.id}", text, context.config.standup_channel, reply_to=reply)
        await publish_task(context, task.id)
        await context.wiki.update_sprint(context.store.state)

    async def hire(self, id: str, role: str, text: str, by: str, msgid: str = "") -> TeamMember:
        """Hire a worker for a task and return it; ``NotHired`` if that fails.

        If the team is full, a finished worker is retired first. ``text``: the work; ``by``: who requested it;
        ``msgid``: the message that did.
        """
        context = self._context
        async with self.locks[id]:
            task = context.store.state.tasks[id]
            if task.stage.is_over:
                raise NotHired(f"{id} is over")
            if not task.worktree:
                raise NotHired(f"{id} has no worktree yet")
            await self._make_room(task)
            return await self._hiring.hire(role, task, _WORK.format(by=by, channel=task.channel, text=text), msgid)

    async def _make_room(self, task: TeamTask) -> None:
        """Retire a finished worker if the limits allow no further member.

        The worker is one of this task; if the whole team is full, it may be one of another task.
        """
        state, limits = self._context.store.state, self._context.config.limits
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
