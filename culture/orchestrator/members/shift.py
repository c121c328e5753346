"""Shift change: somebody whose context is full, or who is gone, is followed by exactly one with a fresh name."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from culture.lib.git import GitFailed
from culture.orchestrator import prompts
from culture.orchestrator.budget import TEAM
from culture.orchestrator.errors import NoAnswer, NotHired
from culture.orchestrator.journal.state import TeamMember, TeamTask, What
from culture.orchestrator.members.handles import handle
from culture.orchestrator.members.hiring import MemberHiring
from culture.orchestrator.members.other_teams import one_at_a_time
from culture.orchestrator.members.worker_followup import Following
from culture.orchestrator.parts import TeamParts
from culture.orchestrator.repository.git import git, readable
from culture.orchestrator.repository.worktrees import branch_of
from culture.orchestrator.tasks.ledger import publish
from culture.orchestrator.tasks.tasks import TeamTasks
from culture.wiki.names import SPRINT_STATE, handoff

log = logging.getLogger(__name__)

EM = "em"
_ORDER = """You take over from {old}, who was {role}{what}. Read the wiki page `{page}` (culture wiki read {page}), then
the branch's commits, and introduce yourself in {channel} in a sentence. Then go on where {old} stopped."""
_EM_ORDER = """Your context was full and is empty again. Read the wiki pages `{page}` and `{sprint}`, and the decisions,
then say in {channel} in a sentence that you go on."""


class Shift:
    """From the intention to the successor's first prompt; each step can be done again."""

    def __init__(self, parts: TeamParts, hiring: MemberHiring, tasks: TeamTasks, following: Following) -> None:
        self._parts = parts
        self._hiring = hiring
        self._tasks = tasks
        self._following = following

    def is_open(self, nick: str) -> bool:
        """Whether somebody is about to hand over."""
        return any(entry.data["nick"].lower() == nick.lower() for entry in self._parts.book.state.pending(What.SHIFT))

    def begin(self, member: TeamMember, why: str, asked: bool = True) -> None:
        """Have somebody followed; without ``asked`` they are not asked to hand over, as they cannot."""
        if self.is_open(member.nick) or member.leaving:
            return
        state = self._parts.book.state
        task = state.tasks.get(member.task_id or "")
        number = 1 + (task.shifts if task else state.shifts)
        with one_at_a_time(self._parts.folder):
            try:
                successor = member.name if member.role == EM else self._hiring.next_name()
            except NotHired as none:
                self._parts.jobs.start(f"complain {member.nick}", self._parts.complain(f"names {number}", str(none)))
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
            self._parts.book.intend(What.SHIFT, **data)
        self.go_on(data)

    def go_on(self, data: Mapping[str, Any]) -> None:
        """Go on with a shift change wherever it stands."""
        self._parts.jobs.start(f"shift {data['nick']}", self._change(data))

    async def _change(self, data: Mapping[str, Any]) -> None:
        parts = self._parts
        async with self._tasks.turns[data["task"] or EM]:
            task = parts.book.state.tasks.get(data["task"] or "")
            if task is not None and task.stage.is_over:
                parts.book.failed(What.SHIFT, nick=data["nick"], why=f"{task.id} is over")
                return
            if self._is_parked(data):
                return
            if data["asked"]:
                await self._ask(data)
            if self._is_parked(data):
                return
            if not await parts.record.has(data["page"]):
                await parts.record.put(data["page"], await self._built(data, task), f"{data['name']} left no page")
            await self._announce(data, task)
            gone = parts.book.state.member(data["nick"])
            try:
                await self._follow(data, task)
            except (NotHired, NoAnswer) as why:
                parts.book.failed(What.SHIFT, nick=data["nick"], why=str(why))
                text = f"{data['name']} ({data['role']}) is gone, and nobody follows: {why}"
                await parts.complain(f"unfollowed {data['page']}", text)
                if gone is not None:
                    await self._following.lost(gone, str(why))
                return
            parts.book.done(What.SHIFT, nick=data["nick"], page=data["page"])
        await publish(parts, data["task"])
        await parts.record.sprint(parts.book.state)

    def _is_parked(self, data: Mapping[str, Any]) -> bool:
        """Whether nobody may work on it: then nobody follows either, until more may be spent."""
        return bool(self._parts.book.state.parked & {TEAM, data["task"] or ""})

    async def _ask(self, data: Mapping[str, Any]) -> None:
        """The hand-off prompt, and the end of that turn."""
        parts, key = self._parts, f"handoff-{data['page'].replace('/', '-')}"
        member = parts.book.state.member(data["nick"])
        if member is None or member.leaving or not parts.daemons.is_running(member.nick):
            return
        facts = {**parts.roster.facts(member, parts.book.state), "page": data["page"]}
        facts.setdefault("work_channel", parts.config.project_channel)
        text = prompts.load(parts.config.project_dir, prompts.HANDOFF, facts)
        try:
            await self._hiring.give(member.nick, key, text)
            await handle(self._parts, member).session.send(text, key)
        except NoAnswer as why:
            log.warning("%s does not hand over: %s", member.nick, why)

    async def _announce(self, data: Mapping[str, Any], task: TeamTask | None) -> None:
        config = self._parts.config
        who = "a fresh context" if data["role"] == EM else data["successor"]
        text = f"Shift change: {data['name']} ({data['role']}) hands over to {who}; {data['why']}. Wiki: {data['page']}"
        rooms = (task.channel if task else config.project_channel, config.standup_channel)
        await self._parts.rooms.say_once(f"shift {data['page']}", text, *rooms)

    async def _follow(self, data: Mapping[str, Any], task: TeamTask | None) -> None:
        if data["role"] == EM:
            await self._begin_anew(data)
            return
        nick = self._parts.nick_of(data["successor"])
        await self._hiring.retire(data["nick"], data["why"], heir=nick)
        if self._parts.book.state.member(nick) is None:
            order = _ORDER.format(
                old=data["name"],
                role=data["role"],
                what=f" of {task.id}" if task else "",
                page=data["page"],
                channel=task.channel if task else self._parts.config.standup_channel,
            )
            self._hiring.intend(data["role"], task, f"{order}\n\n{data['order']}", name=data["successor"], instead=True)
        self._following.follow(await self._hiring.settle(nick))

    async def _begin_anew(self, data: Mapping[str, Any]) -> None:
        """The EM keeps name and place, and begins a new session."""
        parts, key = self._parts, f"anew-{data['page'].replace('/', '-')}"
        if not data["asked"] and key not in parts.book.state.prompts:
            await parts.daemons.stop(data["nick"])
        if not parts.daemons.is_running(data["nick"]):
            await self._hiring.settle(data["nick"])
        if key not in parts.book.state.prompts:
            await parts.daemons.call(data["nick"], "clear")
            parts.agents[data["name"]].session.context_tracker.renew()
        channel = parts.config.project_channel
        await self._hiring.give(
            data["nick"], key, _EM_ORDER.format(page=data["page"], sprint=SPRINT_STATE, channel=channel), channel
        )

    async def _built(self, data: Mapping[str, Any], task: TeamTask | None) -> str:
        """What can be known without whoever is gone (I21)."""
        lines = [f"# Hand-off of {data['name']}, {data['role']}", "", f"Written by the team: {data['why']}."]
        lines += ["", "## What they were given", "", data["order"] or "(nothing)"]
        if said := self._parts.rooms.lately(data["nick"]):
            lines += ["", "## What they said last", "", *(f"    {line}" for line in said.splitlines()[-20:])]
        if task is not None:
            lines += ["", f"## {task.id}", "", task.text, "", f"Last report: {task.said or 'none'}."]
            lines += await _work(Path(task.worktree), task)
        return "\n".join(lines) + "\n"


async def _work(worktree: Path, task: TeamTask) -> list[str]:
    try:
        commits = await git(worktree, "log", "--no-color", "--format=%h %an: %s", f"{task.base}..{branch_of(task.id)}")
        edits = await git(worktree, "status", "--porcelain", "--untracked-files=all")
    except (GitFailed, OSError) as error:
        return ["", f"The worktree cannot be read: {error}"]
    done, left = readable(commits).splitlines(), readable(edits).splitlines()
    found = ["", "## Commits", "", *(f"- {line}" for line in done or ["none yet"])]
    return [*found, "", "## Not committed", "", *(f"- {line}" for line in left or ["nothing"])]
