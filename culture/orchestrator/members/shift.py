"""Shift change: replaces a member whose context is full, or that is gone, by a new one.

The steps: the member is prompted to write a hand-off page to the wiki (the orchestrator builds one if it cannot), the
change is announced, the member retires, its successor is hired under a name chosen at the start, and gets the page as
its order. Every step can be repeated: the open ``shift`` entry of the journal has the name and page, so that a crash
leads to exactly one successor. The EM keeps its name and only begins with an empty context.
"""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from culture.lib.git import GitFailed
from culture.orchestrator import prompts
from culture.orchestrator.budget import TEAM
from culture.orchestrator.errors import NoAnswer, NotHired
from culture.orchestrator.journal.state import Act, TeamMember, TeamTask
from culture.orchestrator.members.hiring import MemberHiring
from culture.orchestrator.members.worker_followup import WorkerFollowup
from culture.orchestrator.names import one_at_a_time
from culture.orchestrator.repository.git import git, readable
from culture.orchestrator.repository.worktrees import branch_of
from culture.orchestrator.tasks.ledger import publish_task
from culture.orchestrator.tasks.tasks import TeamTasks
from culture.orchestrator.team_context import TeamContext
from culture.protocol.names import fold
from culture.wiki.names import SPRINT_STATE, handoff

log = logging.getLogger(__name__)

EM = "em"
_ORDER = """You take over from {old}, who was {role}{what}. Read the wiki page `{page}` (culture wiki read {page}), then
the branch's commits, and introduce yourself in {channel} in a sentence. Then go on where {old} stopped."""
_EM_ORDER = """Your context was full and is empty again. Read the wiki pages `{page}` and `{sprint}`, and the decisions,
then say in {channel} in a sentence that you go on."""


class Shift:
    """Performs shift changes of the team's members; each step can be repeated."""

    def __init__(self, context: TeamContext, hiring: MemberHiring, tasks: TeamTasks, followup: WorkerFollowup) -> None:
        self._context = context
        self._hiring = hiring
        self._tasks = tasks
        self._followup = followup

    def is_open(self, nick: str) -> bool:
        """Return whether a shift change of this member is under way."""
        return any(fold(entry.data["nick"]) == fold(nick) for entry in self._context.store.state.pending(Act.SHIFT))

    def begin(self, member: TeamMember, why: str, asked: bool = True) -> None:
        """Start the shift change of a member in the background, unless one is under way.

        ``why``: the reason, for the announcement. ``asked`` False: the member gets no hand-off prompt, since it
        cannot answer.
        """
        if self.is_open(member.nick) or member.leaving:
            return
        state = self._context.store.state
        task = state.tasks.get(member.task_id or "")
        number = 1 + (task.shifts if task else state.shifts)
        with one_at_a_time(self._context.folder):
            try:
                successor = member.name if member.role == EM else self._hiring.next_name()
            except NotHired as error:
                self._context.jobs.start(
                    f"complain {member.nick}", self._context.complain(f"names {number}", str(error))
                )
                return
            data = {
                "nick": member.nick,
                "name": member.name,
                "role": member.role,
                "task": member.task_id,
                "order": member.order,
                "page": handoff(f"{task.id if task else EM}-{number}"),
                "successor": successor,
                "why": why,
                "asked": asked,
            }
            self._context.store.intend(Act.SHIFT, **data)
        self.resume(data)

    def resume(self, data: Mapping[str, Any]) -> None:
        """Continue a shift change in the background, from the step it has reached.

        ``data``: the journal's data of the change.
        """
        self._context.jobs.start(f"shift {data['nick']}", self._change(data))

    async def _change(self, data: Mapping[str, Any]) -> None:
        context = self._context
        async with self._tasks.locks[data["task"] or EM]:
            task = context.store.state.tasks.get(data["task"] or "")
            if task is not None and task.stage.is_over:
                context.store.failed(Act.SHIFT, nick=data["nick"], why=f"{task.id} is over")
                return
            if self._is_parked(data):
                return
            if data["asked"]:
                await self._prompt_handoff(data)
            if self._is_parked(data):
                return
            if not await context.wiki.has_text(data["page"]):
                await context.wiki.replace(
                    data["page"], await self._build_page(data, task), f"{data['name']} left no page"
                )
            await self._announce(data, task)
            member = context.store.state.member(data["nick"])
            try:
                await self._replace(data, task)
            except (NotHired, NoAnswer) as why:
                context.store.failed(Act.SHIFT, nick=data["nick"], why=str(why))
                text = f"{data['name']} ({data['role']}) is gone, and nobody follows: {why}"
                await context.complain(f"unfollowed {data['page']}", text)
                if member is not None:
                    await self._followup.report_lost(member, str(why))
                return
            context.store.done(Act.SHIFT, nick=data["nick"], page=data["page"])
        await publish_task(context, data["task"])
        await context.wiki.update_sprint(context.store.state)

    def _is_parked(self, data: Mapping[str, Any]) -> bool:
        """Return whether the budget of the task or the team is spent: then the shift change waits.

        ``data``: the journal's data of the change.
        """
        return bool(self._context.store.state.parked & {TEAM, data["task"] or ""})

    async def _prompt_handoff(self, data: Mapping[str, Any]) -> None:
        """Prompt the member to write its hand-off page, and wait for the end of that turn.

        ``data``: the journal's data of the change, which names the member.
        """
        context, key = self._context, f"handoff-{data['page'].replace('/', '-')}"
        member = context.store.state.member(data["nick"])
        if member is None or member.leaving or not context.daemons.is_running(member.nick):
            return
        values = {**context.roster.placeholders(member, context.store.state), "page": data["page"]}
        values.setdefault("work_channel", context.config.project_channel)
        text = prompts.load(context.config.project_dir, prompts.HANDOFF, values)
        try:
            await self._hiring.give(member.nick, key, text)
            await context.handle(member).session.send(text, key)
        except NoAnswer as why:
            log.warning("%s wrote no hand-off: %s", member.nick, why)

    async def _announce(self, data: Mapping[str, Any], task: TeamTask | None) -> None:
        config = self._context.config
        who = "a fresh context" if data["role"] == EM else data["successor"]
        text = f"Shift change: {data['name']} ({data['role']}) hands over to {who}; {data['why']}. Wiki: {data['page']}"
        rooms = (task.channel if task else config.project_channel, config.standup_channel)
        await self._context.rooms.say_once(f"shift {data['page']}", text, *rooms)

    async def _replace(self, data: Mapping[str, Any], task: TeamTask | None) -> None:
        if data["role"] == EM:
            await self._clear_em(data)
            return
        nick = self._context.nick_of(data["successor"])
        await self._hiring.retire(data["nick"], data["why"], heir=nick)
        if self._context.store.state.member(nick) is None:
            order = _ORDER.format(
                old=data["name"],
                role=data["role"],
                what=f" of {task.id}" if task else "",
                page=data["page"],
                channel=task.channel if task else self._context.config.standup_channel,
            )
            self._hiring.intend(data["role"], task, f"{order}\n\n{data['order']}", name=data["successor"], instead=True)
        self._followup.follow(await self._hiring.settle(nick))

    async def _clear_em(self, data: Mapping[str, Any]) -> None:
        """Give the EM a new session under the same name, and prompt it to read the hand-off page.

        ``data``: the journal's data of the change.
        """
        context, key = self._context, f"anew-{data['page'].replace('/', '-')}"
        if not data["asked"] and key not in context.store.state.prompts:
            await context.daemons.stop(data["nick"])
        if not context.daemons.is_running(data["nick"]):
            await self._hiring.settle(data["nick"])
        if key not in context.store.state.prompts:
            await context.daemons.call(data["nick"], "clear")
            context.agents[data["name"]].session.context_tracker.reset()
        channel = context.config.project_channel
        await self._hiring.give(
            data["nick"], key, _EM_ORDER.format(page=data["page"], sprint=SPRINT_STATE, channel=channel), channel
        )

    async def _build_page(self, data: Mapping[str, Any], task: TeamTask | None) -> str:
        """Return a hand-off page, built from the orchestrator's records.

        It stands in for the page that the member should have written. ``data``: the journal's data of the change;
        ``task``: the member's task.
        """
        lines = [f"# Hand-off of {data['name']}, {data['role']}", "", f"Written by the team: {data['why']}."]
        lines += ["", "## What they were given", "", data["order"] or "(nothing)"]
        if recent := self._context.rooms.recent_lines(data["nick"]):
            lines += ["", "## What they said last", "", *(f"    {line}" for line in recent.splitlines()[-20:])]
        if task is not None:
            lines += ["", f"## {task.id}", "", task.text, "", f"Last report: {task.said or 'none'}."]
            lines += await _describe_work(Path(task.worktree), task)
        return "\n".join(lines) + "\n"


async def _describe_work(worktree: Path, task: TeamTask) -> list[str]:
    try:
        commits = await git(worktree, "log", "--no-color", "--format=%h %an: %s", f"{task.base}..{branch_of(task.id)}")
        edits = await git(worktree, "status", "--porcelain", "--untracked-files=all")
    except (GitFailed, OSError) as error:
        return ["", f"The worktree cannot be read: {error}"]
    committed, uncommitted = readable(commits).splitlines(), readable(edits).splitlines()
    lines = ["", "## Commits", "", *(f"- {line}" for line in committed or ["none yet"])]
    return [*lines, "", "## Not committed", "", *(f"- {line}" for line in uncommitted or ["nothing"])]
