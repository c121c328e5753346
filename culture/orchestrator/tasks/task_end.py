"""A task ends: first it is checked whether what was reported is so, then everybody goes, and nothing is lost."""

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from culture.lib.git import GitFailed
from culture.orchestrator.errors import NoAnswer
from culture.orchestrator.journal.state import TaskStage, TeamTask, What
from culture.orchestrator.members.hiring import SEEN, MemberHiring
from culture.orchestrator.parts import TeamParts
from culture.orchestrator.prompts import PromptLimit
from culture.orchestrator.repository import merge
from culture.orchestrator.repository.git import commit_of, git
from culture.orchestrator.repository.salvage import is_dirty, salvage
from culture.orchestrator.repository.worktrees import InUse, branch_of
from culture.orchestrator.tasks.ledger import publish
from culture.orchestrator.tasks.task_lines import TaskReport
from culture.orchestrator.tasks.tasks import TeamTasks
from culture.protocol.split import clip

log = logging.getLogger(__name__)

DRAIN = 30.0
"""How long somebody may take to end the turn in which they said that all is done."""
_STEP = 0.2
_LONGEST_SAID = 200


class Finishing:
    """What becomes of a report."""

    def __init__(self, parts: TeamParts, hiring: MemberHiring, tasks: TeamTasks) -> None:
        self._parts = parts
        self._hiring = hiring
        self._tasks = tasks
        self._sent_back = PromptLimit()

    def report(self, id: str, how: TaskReport, text: str, by: str, msgid: str = "") -> None:
        """Write down what was reported; it is looked into beside."""
        data = {"key": f"{id} {msgid}", "id": id, "how": how.value, "text": text, "by": by, "msgid": msgid}
        self._parts.book.intend(What.REPORT, **data)
        self.look_into(data)

    def give_up(self, id: str, why: str) -> None:
        """Nobody can work on a task: what there is is kept, and the task can be given out again (O24)."""
        self.report(id, TaskReport.FAILED, why, "the team", f"given-up-{self._parts.book.state.number}")

    def look_into(self, data: Mapping[str, Any]) -> None:
        """Go on with a report wherever it stands."""
        self._parts.jobs.start(f"report {data['id']} {data['msgid']}", self._look_into(data))

    def finish(self, id: str) -> None:
        """Go on with the end of a task wherever it stands."""
        self._parts.jobs.start(f"finish {id}", self._finish(id))

    async def _look_into(self, data: Mapping[str, Any]) -> None:
        parts, id = self._parts, data["id"]
        async with self._tasks.turns[id]:
            task = parts.book.state.tasks[id]
            if task.stage.is_over:
                parts.book.failed(What.REPORT, **data, why="it was over")
                return
            missing = await self.missing(task) if data["how"] == TaskReport.DONE else ""
            if missing:
                parts.book.failed(What.REPORT, **data, why=missing)
                await self._send_back(task, data, missing)
                return
            parts.book.done(What.REPORT, **data)
        await publish(parts, id)
        if data["how"] == TaskReport.WAITING:
            place, text = parts.config.project_channel, f"{id} waits: {data['text']}"
            await self._hiring.prompt_em(f"pass-{id}-{data['msgid']}", text, place)
            await parts.record.sprint(parts.book.state)
        else:
            await self._finish(id)

    async def missing(self, task: TeamTask) -> str:
        """What is still to be done before a task is done; nothing, when it is."""
        worktree, branch = Path(task.worktree), branch_of(task.id)
        # Somebody may have removed it by hand; then the branch is all there is.
        await self._parts.worktrees.ensure(task.id, self._parts.main)
        if await is_dirty(worktree):
            return "not everything in the worktree is committed"
        commit = await commit_of(worktree, "HEAD")
        if commit != await commit_of(self._parts.config.project_dir, f"refs/heads/{branch}"):
            return f"the worktree is not on the branch {branch}"
        if not (await git(worktree, "rev-list", "--max-count=1", f"{task.base}..{branch}")).strip():
            return f"the branch {branch} has no commit"
        return await self._unpushed(worktree, branch, commit or "")

    async def _unpushed(self, worktree: Path, branch: str, commit: str) -> str:
        remote = self._parts.remote
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
        parts = self._parts
        key = f"back {data['msgid'] or parts.book.state.number}"
        said = f"[{task.id}] is not done yet: {missing}."
        reply = data["msgid"].partition("/")[0]
        await parts.rooms.say_once(key, said, task.channel, parts.config.standup_channel, reply_to=reply)
        more = self._sent_back.take(task.manager) if task.manager is not None else None
        if task.manager is not None and more is not None:
            order = (
                f"{said} See to it, then report again: TASK: {task.id} done: …; or, if you cannot, waiting or failed."
            )
            await self._hiring.tell(task.manager, key.replace(" ", "-"), order + more)

    async def _finish(self, id: str) -> None:
        """Everybody goes, then the worktree."""
        parts = self._parts
        async with self._tasks.turns[id]:
            for member in parts.book.state.team_of(id):
                await self._drain(member.nick)
                await self._hiring.retire(member.nick, f"{id} is over")
            await self._clean_up(id)
        task = parts.book.state.tasks[id]
        await publish(parts, id)
        await parts.record.sprint(parts.book.state)
        await self._tell(task)
        if parts.rooms.is_in(task.channel):
            await parts.rooms.leave(task.channel)
        self._tasks.begin_queued()

    async def _drain(self, nick: str) -> None:
        """Let somebody end their turn."""
        try:
            async with asyncio.timeout(DRAIN):
                # A daemon tells nobody of the end of a turn that it was not asked for.
                while (await self._parts.daemons.call(nick, "status")).get("state") in SEEN:  # noqa: ASYNC110
                    await asyncio.sleep(_STEP)
        except (NoAnswer, TimeoutError):
            log.info("%s is not waited for", nick)

    async def _clean_up(self, id: str) -> None:
        parts, task = self._parts, self._parts.book.state.tasks[id]
        if task.cleaned:
            return
        if not task.worktree:
            # It was never begun, such as one that was not wanted any more while it waited for room.
            parts.book.done(What.CLEANUP, id=id)
            return
        parts.book.intend(What.CLEANUP, id=id)
        is_done, why = task.stage is TaskStage.DONE, f"{id} ended as {task.stage.value}"
        kept = await salvage(parts.config.project_dir, Path(task.worktree), id, why, is_done=is_done)
        if is_done and kept.uncommitted:
            text = f"[{id}] What was changed after the report is not on the branch; it is kept under {kept.ref}."
            await parts.rooms.say_once(f"late {id}", text, parts.config.standup_channel)
        stays = kept.must_stay
        if not stays:
            try:
                await parts.worktrees.remove(id)
            except InUse as busy:
                stays = str(busy)
        if stays:
            how = "`culture team status` says what to type when nobody needs it"
            await parts.complain(f"stays {id}", f"[{id}] {task.worktree} stays: {stays}. {how}.")
        parts.book.done(What.CLEANUP, id=id, ref=kept.ref, **({"stays": stays} if stays else {}))

    async def _tell(self, task: TeamTask) -> None:
        parts, config = self._parts, self._parts.config
        # What is done is committed, and what was changed after the report has been told of.
        is_told = task.rescue and task.stage is not TaskStage.DONE
        rescue = f" Uncommitted work is kept under {task.rescue}." if is_told else ""
        stays = " Its worktree stays: `culture team status` says why." if task.stays else ""
        if task.stage is TaskStage.DONE:
            then = f"Look: culture team diff {task.id}. Merge: culture team merge {task.id}."
        elif not task.branch:
            then = "It was not begun; give it out again with TASK:."
        else:
            then = f"The branch {branch_of(task.id)} is kept; give it out again with TASK:."
        said = clip(" ".join(task.said.split()), _LONGEST_SAID).rstrip(".") or "nothing was said"
        text = f"[{task.id}] {task.stage.value}: {said}. {then}{rescue}{stays}"
        rooms = [config.standup_channel, *([task.channel] if parts.rooms.is_in(task.channel) else [])]
        await parts.rooms.say_once(f"over {task.id}", text, *rooms)
        await self._hiring.prompt_em(f"pass-{task.id}-over", text, config.project_channel)
        if task.stage is TaskStage.DONE and (found := await self._conflicts(task)):
            text = f"[{task.id}] and {parts.main} both change {', '.join(found)}: somebody has to say which holds."
            await parts.rooms.say_once(f"conflict {task.id}", text, config.project_channel)

    async def _conflicts(self, task: TeamTask) -> tuple[str, ...]:
        project = self._parts.config.project_dir
        try:
            return await merge.conflicts(project, f"refs/heads/{self._parts.main}", f"refs/heads/{branch_of(task.id)}")
        except GitFailed as error:
            log.warning("%s was not compared with %s: %s", task.id, self._parts.main, error)
            return ()
