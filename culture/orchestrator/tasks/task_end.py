"""The end of a task: check the report, retire the members, salvage and remove the worktree."""

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from culture.lib.git import GitFailed
from culture.orchestrator.errors import NoAnswer
from culture.orchestrator.journal.state import Act, TaskStage, TeamTask
from culture.orchestrator.members.hiring import IN_TURN, MemberHiring
from culture.orchestrator.prompts import PromptLimit
from culture.orchestrator.repository import merge
from culture.orchestrator.repository.git import commit_of, git
from culture.orchestrator.repository.salvage import is_dirty, salvage
from culture.orchestrator.repository.worktrees import InUse, branch_of
from culture.orchestrator.tasks.ledger import publish_task
from culture.orchestrator.tasks.task_lines import TaskReport
from culture.orchestrator.tasks.tasks import TeamTasks
from culture.orchestrator.team_context import TeamContext
from culture.protocol.split import clip

log = logging.getLogger(__name__)

DRAIN = 30.0
"""Seconds that a member may take to end the turn in which it reported."""
_STEP = 0.2
_LONGEST_REPORT = 200


class TaskEnd:
    """Handles reports of a task's status, and ends tasks."""

    def __init__(self, context: TeamContext, hiring: MemberHiring, tasks: TeamTasks) -> None:
        self._context = context
        self._hiring = hiring
        self._tasks = tasks
        self._refusals = PromptLimit()

    def report(self, id: str, how: TaskReport, text: str, by: str, msgid: str = "") -> None:
        """Record that ``by`` reported the status ``how`` of the task ``id``, then check the report.

        The check runs in the background. ``text``: the report's words; ``msgid``: the message that has them.
        """
        data = {"key": f"{id} {msgid}", "id": id, "how": how.value, "text": text, "by": by, "msgid": msgid}
        self._context.store.intend(Act.REPORT, **data)

        self.check_report(data)

    def give_up(self, id: str, why: str) -> None:
        """Report a task on which nobody can work as failed, with the reason ``why``.

        The task's work is saved, and it can be requested again.
        """
        self.report(id, TaskReport.FAILED, why, "the team", f"given-up-{self._context.store.state.number}")

    def check_report(self, data: Mapping[str, Any]) -> None:
        """Check a recorded report in the background; also resumes a check that was interrupted.

        ``data``: the journal's data of the report.
        """
        self._context.jobs.start(f"report {data['id']} {data['msgid']}", self._check_report(data))

    def finish(self, id: str) -> None:
        """End a task in the background; also resumes an end that was interrupted."""
        self._context.jobs.start(f"finish {id}", self._finish(id))

    async def _check_report(self, data: Mapping[str, Any]) -> None:
        context, id = self._context, data["id"]
        async with self._tasks.locks[id]:
            task = context.store.state.tasks[id]
            if task.stage.is_over:
                context.store.failed(Act.REPORT, **data, why="it was over")
                return
            missing = await self.missing_for_done(task) if data["how"] == TaskReport.DONE else ""
            if missing:
                context.store.failed(Act.REPORT, **data, why=missing)
                await self._send_back(task, data, missing)
                return
            context.store.done(Act.REPORT, **data)
        await publish_task(context, id)
        if data["how"] == TaskReport.WAITING:
            place, text = context.config.project_channel, f"{id} waits: {data['text']}"
            await self._hiring.prompt_em(f"pass-{id}-{data['msgid']}", text, place)
            await context.wiki.update_sprint(context.store.state)
        else:
            await self._finish(id)

    async def missing_for_done(self, task: TeamTask) -> str:
        """Return what a task still lacks to count as done; "" if nothing."""
        worktree, branch = Path(task.worktree), branch_of(task.id)
        # A person may have removed the worktree: it is created again from the branch.
        await self._context.worktrees.ensure(task.id, self._context.main)
        if await is_dirty(worktree):
            return "not everything in the worktree is committed"
        commit = await commit_of(worktree, "HEAD")
        if commit != await commit_of(self._context.config.project_dir, f"refs/heads/{branch}"):
            return f"the worktree is not on the branch {branch}"
        if not (await git(worktree, "rev-list", "--max-count=1", f"{task.base}..{branch}")).strip():
            return f"the branch {branch} has no commit"
        return await self._unpushed(worktree, branch, commit or "")

    async def _unpushed(self, worktree: Path, branch: str, commit: str) -> str:
        remote = self._context.remote
        if remote is None:
            return ""
        try:
            listed = await git(worktree, "ls-remote", remote, f"refs/heads/{branch}")
        except GitFailed as error:
            return f"the remote {remote} does not answer ({error.words.strip()[-200:]})"
        if listed.split("\t")[0].strip() != commit:
            return f"{branch} is not pushed: git push {remote} {branch}"
        return ""

    async def _send_back(self, task: TeamTask, data: Mapping[str, Any], missing: str) -> None:
        context = self._context
        key = f"back {data['msgid'] or context.store.state.number}"
        text = f"[{task.id}] is not done yet: {missing}."
        reply = data["msgid"].partition("/")[0]
        await context.rooms.say_once(key, text, task.channel, context.config.standup_channel, reply_to=reply)
        more = self._refusals.take(task.manager) if task.manager is not None else None
        if task.manager is not None and more is not None:
            order = (
                f"{text} See to it, then report again: TASK: {task.id} done: …; or, if you cannot, waiting or failed."
            )
            await self._hiring.tell(task.manager, key.replace(" ", "-"), order + more)

    async def _finish(self, id: str) -> None:
        """Retire the task's members, remove its worktree, announce the end, and begin queued tasks."""
        context = self._context
        async with self._tasks.locks[id]:
            for member in context.store.state.team_of(id):
                await self._wait_for_turn_end(member.nick)
                await self._hiring.retire(member.nick, f"{id} is over")
            await self._clean_up(id)
        task = context.store.state.tasks[id]
        await publish_task(context, id)
        await context.wiki.update_sprint(context.store.state)
        await self._announce(task)
        if context.rooms.is_in(task.channel):
            await context.rooms.leave(task.channel)
        self._tasks.begin_queued()

    async def _wait_for_turn_end(self, nick: str) -> None:
        """Wait until a member's turn is over, at most ``DRAIN`` seconds."""
        try:
            async with asyncio.timeout(DRAIN):
                # A daemon reports the end of a turn only to whoever started it.
                while (await self._context.daemons.call(nick, "status")).get("state") in IN_TURN:  # noqa: ASYNC110
                    await asyncio.sleep(_STEP)
        except (NoAnswer, TimeoutError):
            log.info("no longer waiting for the turn of %s", nick)

    async def _clean_up(self, id: str) -> None:
        context, task = self._context, self._context.store.state.tasks[id]
        if task.cleaned:
            return
        if not task.worktree:
            # The task was ended while it was queued.
            context.store.done(Act.CLEANUP, id=id)
            return
        context.store.intend(Act.CLEANUP, id=id)
        is_done, why = task.stage is TaskStage.DONE, f"{id} ended as {task.stage.value}"
        salvaged = await salvage(context.config.project_dir, Path(task.worktree), id, why, is_done=is_done)
        if is_done and salvaged.uncommitted:
            text = f"[{id}] What was changed after the report is not on the branch; it is kept under {salvaged.ref}."
            await context.rooms.say_once(f"late {id}", text, context.config.standup_channel)
        stays = salvaged.must_stay
        if not stays:
            try:
                await context.worktrees.remove(id)
            except InUse as busy:
                stays = str(busy)
        if stays:
            how = "`culture team status` says what to type when nobody needs it"
            await context.complain(f"stays {id}", f"[{id}] {task.worktree} stays: {stays}. {how}.")
        context.store.done(Act.CLEANUP, id=id, ref=salvaged.ref, **({"stays": stays} if stays else {}))

    async def _announce(self, task: TeamTask) -> None:
        context, config = self._context, self._context.config
        # Changes after the report of a done task were announced by the clean-up.
        has_rescue = task.rescue and task.stage is not TaskStage.DONE
        rescue = f" Uncommitted work is kept under {task.rescue}." if has_rescue else ""
        stays = " Its worktree stays: `culture team status` says why." if task.stays else ""
        if task.stage is TaskStage.DONE:
            then = f"Look: culture team diff {task.id}. Merge: culture team merge {task.id}."
        elif not task.branch:
            then = "It was not begun; give it out again with TASK:."
        else:
            then = f"The branch {branch_of(task.id)} is kept; give it out again with TASK:."
        report = clip(" ".join(task.said.split()), _LONGEST_REPORT).rstrip(".") or "nothing was said"
        text = f"[{task.id}] {task.stage.value}: {report}. {then}{rescue}{stays}"
        rooms = [config.standup_channel, *([task.channel] if context.rooms.is_in(task.channel) else [])]
        await context.rooms.say_once(f"over {task.id}", text, *rooms)
        await self._hiring.prompt_em(f"pass-{task.id}-over", text, config.project_channel)
        if task.stage is TaskStage.DONE and (files := await self._conflicts(task)):
            question = merge.conflict_question(f"[{task.id}]", task.id, context.main, files)
            await context.rooms.say_once(f"conflict {task.id}", question, config.project_channel)
            # The answer comes in that room, where the EM hears it.
            await self._hiring.prompt_em(f"pass-{task.id}-conflict", question, config.project_channel)

    async def _conflicts(self, task: TeamTask) -> tuple[str, ...]:
        project = self._context.config.project_dir
        try:
            return await merge.conflicts(
                project, f"refs/heads/{self._context.main}", f"refs/heads/{branch_of(task.id)}"
            )
        except GitFailed as error:
            log.warning("could not compare %s with %s: %s", task.id, self._context.main, error)
            return ()
