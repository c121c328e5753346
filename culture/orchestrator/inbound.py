"""Acts on messages in a team's channels: ``TASK:`` lines, messages for a manager or the EM."""

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from culture.orchestrator.errors import NotHired, NotTaken
from culture.orchestrator.irc import split_requests
from culture.orchestrator.journal.state import Act, TaskStage, TeamMember, TeamTask
from culture.orchestrator.members.hiring import MemberHiring
from culture.orchestrator.members.worker_followup import WorkerFollowup
from culture.orchestrator.prompts import PromptLimit
from culture.orchestrator.tasks import task_lines
from culture.orchestrator.tasks.ledger import publish_task
from culture.orchestrator.tasks.task_end import TaskEnd
from culture.orchestrator.tasks.task_lines import (
    LineAuthor,
    NewTask,
    NewWorker,
    StatusReport,
    TaskLine,
    Wake,
    may_request,
)
from culture.orchestrator.tasks.tasks import TeamTasks
from culture.orchestrator.team_context import TeamContext
from culture.protocol.names import fold
from culture.protocol.text import name_in_prompt
from culture.protocol.vocabulary import UserClass
from culture.transport import Message

log = logging.getLogger(__name__)

CHECK = "Check your channels."
_LONGEST = 4000
_LONGEST_LINE = 200


class TeamInbound:
    """Handles every message of the team's channels in order; long work runs in background jobs."""

    def __init__(
        self, context: TeamContext, hiring: MemberHiring, tasks: TeamTasks, task_end: TaskEnd, followup: WorkerFollowup
    ) -> None:
        self._context = context
        self._hiring = hiring
        self._tasks = tasks
        self._task_end = task_end
        self._followup = followup
        self._refusals = PromptLimit()

    async def handle(self, message: Message) -> None:
        """Act on a message: carry out its ``TASK:`` lines, or pass it on to the manager or the EM."""
        if not self._is_team_channel(message.channel):
            return
        requests = list(split_requests(message.text))
        if not requests:
            self._resume_waiting_task(message)
            await self._forward(message)
        for remaining, text in zip(reversed(range(len(requests))), requests, strict=True):
            # The last request gets the message's own id: it counts as handled only when all of them are.
            msgid = f"{message.msgid}/{remaining}" if remaining else message.msgid
            line = task_lines.parse(text)
            state = self._context.store.state
            if line is not None and msgid not in state.handled and f"refused {msgid}" not in state.announced:
                await self._handle_line(message, msgid, line)

    def _resume_waiting_task(self, message: Message) -> None:
        """Mark the task of a message's channel as working if it waits and a person or the EM wrote."""
        task = self._task_in(message.channel)
        is_em = message.kind is UserClass.AGENT and fold(message.sender) == fold(self._context.em)
        may_answer = message.kind is UserClass.HUMAN or is_em
        if task is not None and task.stage is TaskStage.WAITING and may_answer:
            key = f"{task.id} goes on"
            self._context.store.done(Act.REPORT, key=key, id=task.id, how=TaskStage.WORKING.value, text=task.said)

    async def _handle_line(self, message: Message, msgid: str, line: TaskLine) -> None:
        task = self._task_in(message.channel)
        if isinstance(line, NewWorker) and task is None:
            line = NewTask(f"{line.role}: {line.text}")
        about = self._task_of_line(line, task)
        speaker = LineAuthor(message.sender, message.kind)
        if not may_request(speaker, line, self._context.em, about.manager if about else None):
            await self._ignore(message, about)
            return
        try:
            self._execute(message, msgid, line, task)
        except (NotTaken, NotHired) as why:
            await self._refuse(message, msgid, about, str(why))

    async def _refuse(self, message: Message, msgid: str, about: TeamTask | None, why: str) -> None:
        """Post why a ``TASK:`` line was refused; if a member wrote it, prompt that member.

        ``msgid``: the id of the line, one of several in ``message``; ``about``: the task that it is about, if any.
        """
        key, line = f"refused-{msgid}", " ".join(message.text.split())[:_LONGEST_LINE]
        prefix = f"[{about.id}] " if about else ""
        author = self._author(message)
        more = self._refusals.take(author.nick) if author is not None else None
        order = f'{prefix}Nothing came of your line in {name_in_prompt(message.channel)}: {why}. You wrote: "{line}"'
        if author is not None and more is not None:
            # First the journal: a refused line is not handled again after a crash.
            self._hiring.promise(author.nick, key, order + more)
        await self._context.rooms.say_once(f"refused {msgid}", why, message.channel, reply_to=message.msgid)
        if author is not None and more is not None:
            self._context.jobs.start(key, self._hiring.tell(author.nick, key, order + more))

    def _author(self, message: Message) -> TeamMember | None:
        """Return the member who wrote a message; None for anybody without an agent account."""
        return self._context.store.state.member(message.sender) if message.kind is UserClass.AGENT else None

    def _execute(self, message: Message, msgid: str, line: TaskLine, task: TeamTask | None) -> None:
        match line:
            case NewTask(text):
                if task is not None:
                    raise NotTaken(f"say whom you want here, as in TASK: implementer: {text[:40]}")
                self._tasks.take(text, message.sender, msgid)
            case NewWorker(role, text):
                assert task is not None
                self._request_worker(message, msgid, task, role, text)
            case Wake(who, text):
                member = self._context.store.state.find_member(who)
                if member is None:
                    raise NotTaken(f"nobody in the team is called {who}")
                self._wake(member, message, msgid, text)
            case StatusReport(id, how, text):
                if id not in self._context.store.state.tasks:
                    raise NotTaken(f"there is no task {id}")
                self._task_end.report(id, how, text, message.sender, msgid)

    def _request_worker(self, message: Message, msgid: str, task: TeamTask, role: str, text: str) -> None:
        """Record that a worker was requested for a task, then hire it in the background.

        ``msgid``: the id of the ``TASK:`` line, one of several in ``message``; ``text``: the worker's instruction.
        """
        by, place = message.sender, message.channel
        data = {"key": msgid, "msgid": msgid, "id": task.id, "role": role, "text": text, "by": by, "place": place}
        self._context.store.intend(Act.WANTED, **data)
        self.hire(data)

    def hire(self, data: Mapping[str, Any]) -> None:
        """Hire a requested worker in the background; also continues a hire after a restart.

        ``data``: the journal's data of the request.
        """
        self._context.jobs.start(f"hire {data['key']}", self._hire(data))

    async def _hire(self, data: Mapping[str, Any]) -> None:
        rooms, key, place = self._context.rooms, data["key"], data["place"]
        reply = key.partition("/")[0]
        try:
            member = await self._tasks.hire(data["id"], data["role"], data["text"], data["by"], key)
        except NotHired as why:
            self._context.store.failed(Act.WANTED, key=key, why=str(why))
            await rooms.say_once(f"hired {key}", f"Nobody was hired: {why}.", place, reply_to=reply)
            await self._prompt_not_hired(data, str(why))
            return

        await self.confirm_hire(member, place)

    async def _prompt_not_hired(self, data: Mapping[str, Any], why: str) -> None:
        """Prompt the task's manager that a requested worker was not hired, and ``why``.

        The message in the channel does not mention the manager, so it may not start a turn of the manager. ``data``:
        the journal's data of the request.
        """
        task = self._context.store.state.tasks[data["id"]]
        if task.manager is not None and not task.stage.is_over:
            request = " ".join(data["text"].split())[:_LONGEST_LINE]
            text = f'[{task.id}] Nobody was hired as {data["role"]}: {why}. What was wanted: "{request}"'
            await self._hiring.tell(task.manager, f"nobody-{data['key']}", text, task.channel)

    async def confirm_hire(self, member: TeamMember, place: str) -> None:
        """Post in the channel ``place`` that a member was hired, and watch for the end of its work."""
        rooms, key = self._context.rooms, member.wanted
        text = f"hired {member.nick} as {member.role}"
        await rooms.say_once(f"hired {key}", text, place, reply_to=key.partition("/")[0])
        self._followup.follow(member)
        await publish_task(self._context, member.task_id)
        await self._context.wiki.update_sprint(self._context.store.state)

    def _wake(self, member: TeamMember, message: Message, msgid: str, text: str) -> None:
        """Prompt a member with a message, unless an IRC mention in it already started a turn.

        ``text``: the part of the message that is for the member; ``msgid``: the id of that part, so that it counts
        once.
        """
        if fold(member.nick) in map(fold, message.mentions):
            return
        order = (
            f"{CHECK} In {name_in_prompt(message.channel)}, {name_in_prompt(message.sender)} says: {text[:_LONGEST]}"
        )
        place = message.channel if fold(message.channel) in map(fold, member.channels) else None
        key = f"wake-{msgid}"
        if self._hiring.promise(member.nick, key, order, place, msgid=msgid) and member.hired:
            # A member that is still being hired gets its order first, then all pending prompts.
            self._context.jobs.start(key, self._hiring.tell(member.nick, key, order, place))

    async def _forward(self, message: Message) -> None:
        """Prompt the task's manager, or the EM, with a person's message that mentions nobody.

        Outside of a task's channel the EM is prompted.
        """
        if message.kind is not UserClass.HUMAN or message.mentions:
            return
        task, state = self._task_in(message.channel), self._context.store.state
        nick = task.manager if task is not None else self._em_of(message.channel)
        member = state.member(nick) if nick else None
        if member is not None:
            self._wake(member, message, message.msgid, message.text)

    def _is_team_channel(self, channel: str) -> bool:
        """Return whether a channel is one of this team; False for #errors, which all teams share."""
        return self._em_of(channel) is not None or self._task_in(channel) is not None

    def _em_of(self, channel: str) -> str | None:
        config = self._context.config
        return (
            self._context.em if fold(channel) in map(fold, (config.project_channel, config.standup_channel)) else None
        )

    async def _ignore(self, message: Message, about: TeamTask | None) -> None:
        """Report a ``TASK:`` line whose author may not write it, once a day per agent.

        If the author is a member, that member is prompted whom to ask. ``about``: the task that the line is about, if
        any.
        """
        log.warning("%s (%s) may not say %r in %s", message.sender, message.kind, message.text, message.channel)
        who = fold(message.sender) if message.kind is UserClass.AGENT else "a stranger"
        key = f"spoofed {who} {datetime.now(UTC):%Y-%m-%d}"
        report = (
            f"{message.sender} ({message.kind}) wrote a TASK: line in {message.channel} and may not; it was ignored."
        )
        author = self._author(message)
        if author is not None:
            prefix = f"[{about.id}] " if about else ""
            owner = (about.manager if about else None) or self._context.em
            order = (
                f"{prefix}Your TASK: line in {message.channel} was ignored: it is not yours to give out. Ask @{owner}."
            )
            prompt = key.replace(" ", "-")
            self._context.jobs.start(prompt, self._hiring.tell(author.nick, prompt, order))
        await self._context.complain(key, report)

    def _task_in(self, channel: str) -> TeamTask | None:
        return next(
            (each for each in self._context.store.state.tasks.values() if fold(each.channel) == fold(channel)), None
        )

    def _task_of_line(self, line: TaskLine, channel_task: TeamTask | None) -> TeamTask | None:
        """Return the task that a ``TASK:`` line is about, or None.

        A report names the task; a line to a member is about that member's task; any other is about the channel's
        task.
        """
        state = self._context.store.state
        if isinstance(line, StatusReport):
            return state.tasks.get(line.id)
        if isinstance(line, Wake):
            member = state.find_member(line.who)
            return state.tasks.get(member.task_id or "") if member else channel_task
        return channel_task
