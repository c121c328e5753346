"""What is said in the team's rooms, and what follows from it: who may ask gets it, who may not is told of."""

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from culture.orchestrator.errors import NotHired, NotTaken
from culture.orchestrator.irc import parts as requests_in
from culture.orchestrator.journal.state import TaskStage, TeamMember, TeamTask, What
from culture.orchestrator.members.hiring import MemberHiring
from culture.orchestrator.members.worker_followup import Following
from culture.orchestrator.parts import TeamParts
from culture.orchestrator.prompts import PromptLimit
from culture.orchestrator.tasks import task_lines
from culture.orchestrator.tasks.ledger import publish
from culture.orchestrator.tasks.task_end import Finishing
from culture.orchestrator.tasks.task_lines import LineAuthor, NewTask, NewWorker, Reported, Wake, Wanted, may
from culture.orchestrator.tasks.tasks import TeamTasks
from culture.protocol.names import fold
from culture.protocol.text import name_in_prompt
from culture.protocol.vocabulary import UserClass
from culture.transport import Message

log = logging.getLogger(__name__)

CHECK = "Check your channels."
_LONGEST = 4000
_LONGEST_LINE = 200


class TeamInbound:
    """Reads every message, in order. Whatever takes long goes on beside."""

    def __init__(
        self, parts: TeamParts, hiring: MemberHiring, tasks: TeamTasks, finishing: Finishing, following: Following
    ) -> None:
        self._parts = parts
        self._hiring = hiring
        self._tasks = tasks
        self._finishing = finishing
        self._following = following
        self._refusals = PromptLimit()

    async def hear(self, message: Message) -> None:
        """Act upon what was said."""
        if not self._is_ours(message.channel):
            return
        requests = list(requests_in(message.text))
        if not requests:
            self._notice_work(message)
            await self._overhear(message)
        for left, text in zip(reversed(range(len(requests))), requests, strict=True):
            # The last one has the id of the message itself, which is known only when all of it was acted upon.
            msgid = f"{message.msgid}/{left}" if left else message.msgid
            wanted = task_lines.read(text)
            state = self._parts.book.state
            if wanted is not None and msgid not in state.heard and f"refused {msgid}" not in state.told:
                await self._consider(message, msgid, wanted)

    def _notice_work(self, message: Message) -> None:
        """A task that waited goes on at a word of a person or the EM; the closing words of its own manager are none."""
        task = self._task_in(message.channel)
        is_em = message.kind is UserClass.AGENT and fold(message.sender) == fold(self._parts.em)
        may_answer = message.kind is UserClass.HUMAN or is_em
        if task is not None and task.stage is TaskStage.WAITING and may_answer:
            key = f"{task.id} goes on"
            self._parts.book.done(What.REPORT, key=key, id=task.id, how=TaskStage.WORKING.value, text=task.said)

    async def _consider(self, message: Message, msgid: str, wanted: Wanted) -> None:
        task = self._task_in(message.channel)
        if isinstance(wanted, NewWorker) and task is None:
            wanted = NewTask(f"{wanted.role}: {wanted.text}")
        about = self._about(wanted, task)
        speaker = LineAuthor(message.sender, message.kind)
        if not may(speaker, wanted, self._parts.em, about.manager if about else None):
            await self._ignore(message, about)
            return
        try:
            self._act(message, msgid, wanted, task)
        except (NotTaken, NotHired) as why:
            await self._refuse(message, msgid, about, str(why))

    async def _refuse(self, message: Message, msgid: str, about: TeamTask | None, why: str) -> None:
        """Tell why nothing comes of a line: a member that wrote it is prompted, everybody else reads it."""
        key, line = f"refused-{msgid}", " ".join(message.text.split())[:_LONGEST_LINE]
        named = f"[{about.id}] " if about else ""
        author = self._author(message)
        more = self._refusals.take(author.nick) if author is not None else None
        order = f'{named}Nothing came of your line in {name_in_prompt(message.channel)}: {why}. You wrote: "{line}"'
        if author is not None and more is not None:
            # First the journal: a line that is known as refused is not looked at again after a crash.
            self._hiring.promise(author.nick, key, order + more)
        await self._parts.rooms.say_once(f"refused {msgid}", why, message.channel, reply_to=message.msgid)
        if author is not None and more is not None:
            self._parts.jobs.start(key, self._hiring.tell(author.nick, key, order + more))

    def _author(self, message: Message) -> TeamMember | None:
        """The member who wrote a line; None for people, and for whoever has a member's nick without its account."""
        return self._parts.book.state.member(message.sender) if message.kind is UserClass.AGENT else None

    def _act(self, message: Message, msgid: str, wanted: Wanted, task: TeamTask | None) -> None:
        match wanted:
            case NewTask(text):
                if task is not None:
                    raise NotTaken(f"say whom you want here, as in TASK: implementer: {text[:40]}")
                self._tasks.take(text, message.sender, msgid)
            case NewWorker(role, text):
                assert task is not None
                self._want(message, msgid, task, role, text)
            case Wake(who, text):
                member = self._parts.book.state.named(who)
                if member is None:
                    raise NotTaken(f"nobody in the team is called {who}")
                self._wake(member, message, msgid, text)
            case Reported(id, how, text):
                if id not in self._parts.book.state.tasks:
                    raise NotTaken(f"there is no task {id}")
                self._finishing.report(id, how, text, message.sender, msgid)

    def _want(self, message: Message, msgid: str, task: TeamTask, role: str, text: str) -> None:
        """Write down that a worker is wanted, before anything that takes a while."""
        by, place = message.sender, message.channel
        data = {"key": msgid, "msgid": msgid, "id": task.id, "role": role, "text": text, "by": by, "place": place}
        self._parts.book.intend(What.WANTED, **data)
        self.hire(data)

    def hire(self, data: Mapping[str, Any]) -> None:
        """Go on with a worker that is wanted."""
        self._parts.jobs.start(f"hire {data['key']}", self._hire(data))

    async def _hire(self, data: Mapping[str, Any]) -> None:
        rooms, key, place = self._parts.rooms, data["key"], data["place"]
        reply = key.partition("/")[0]
        try:
            member = await self._tasks.hire(data["id"], data["role"], data["text"], data["by"], key)
        except NotHired as why:
            self._parts.book.failed(What.WANTED, key=key, why=str(why))
            await rooms.say_once(f"hired {key}", f"Nobody was hired: {why}.", place, reply_to=reply)
            await self._prompt_not_hired(data, str(why))
            return
        await self.welcome(member, place)

    async def _prompt_not_hired(self, data: Mapping[str, Any], why: str) -> None:
        """The manager, who may not read its channel before somebody calls it, learns that nobody comes."""
        task = self._parts.book.state.tasks[data["id"]]
        if task.manager is not None and not task.stage.is_over:
            wanted = " ".join(data["text"].split())[:_LONGEST_LINE]
            text = f'[{task.id}] Nobody was hired as {data["role"]}: {why}. What was wanted: "{wanted}"'
            await self._hiring.tell(task.manager, f"nobody-{data['key']}", text, task.channel)

    async def welcome(self, member: TeamMember, place: str) -> None:
        """Answer whoever asked for somebody."""
        rooms, key = self._parts.rooms, member.wanted
        said = f"hired {member.nick} as {member.role}"
        await rooms.say_once(f"hired {key}", said, place, reply_to=key.partition("/")[0])
        self._following.follow(member)
        await publish(self._parts, member.task_id)
        await self._parts.record.sprint(self._parts.book.state)

    def _wake(self, member: TeamMember, message: Message, msgid: str, text: str) -> None:
        """At once; who is mentioned where they are has it from there."""
        if fold(member.nick) in map(fold, message.mentions):
            return
        order = (
            f"{CHECK} In {name_in_prompt(message.channel)}, {name_in_prompt(message.sender)} says: {text[:_LONGEST]}"
        )
        place = message.channel if fold(message.channel) in map(fold, member.channels) else None
        key = f"wake-{msgid}"
        if self._hiring.promise(member.nick, key, order, place, msgid=msgid) and member.hired:
            # Who is just coming is given first what they come for, and then all that waits.
            self._parts.jobs.start(key, self._hiring.tell(member.nick, key, order, place))

    async def _overhear(self, message: Message) -> None:
        """What a person says to nobody in particular is for whoever runs that room."""
        if message.kind is not UserClass.HUMAN or message.mentions:
            return
        task, state = self._task_in(message.channel), self._parts.book.state
        nick = task.manager if task is not None else self._em_of(message.channel)
        member = state.member(nick) if nick else None
        if member is not None:
            self._wake(member, message, message.msgid, message.text)

    def _is_ours(self, channel: str) -> bool:
        """#errors is everybody's: what is written there is for no team in particular."""
        return self._em_of(channel) is not None or self._task_in(channel) is not None

    def _em_of(self, channel: str) -> str | None:
        config = self._parts.config
        return self._parts.em if fold(channel) in map(fold, (config.project_channel, config.standup_channel)) else None

    async def _ignore(self, message: Message, about: TeamTask | None) -> None:
        """Ignored, and told once a day of each who tries (I24), and of all strangers together; a member is prompted."""
        log.warning("%s (%s) may not say %r in %s", message.sender, message.kind, message.text, message.channel)
        who = fold(message.sender) if message.kind is UserClass.AGENT else "a stranger"
        key = f"spoofed {who} {datetime.now(UTC):%Y-%m-%d}"
        said = f"{message.sender} ({message.kind}) wrote a TASK: line in {message.channel} and may not; it was ignored."
        author = self._author(message)
        if author is not None:
            named = f"[{about.id}] " if about else ""
            whom = (about.manager if about else None) or self._parts.em
            order = (
                f"{named}Your TASK: line in {message.channel} was ignored: it is not yours to give out. Ask @{whom}."
            )
            prompt = key.replace(" ", "-")
            self._parts.jobs.start(prompt, self._hiring.tell(author.nick, prompt, order))
        await self._parts.complain(key, said)

    def _task_in(self, channel: str) -> TeamTask | None:
        return next(
            (each for each in self._parts.book.state.tasks.values() if fold(each.channel) == fold(channel)), None
        )

    def _about(self, wanted: Wanted, here: TeamTask | None) -> TeamTask | None:
        """The task that a request concerns."""
        state = self._parts.book.state
        if isinstance(wanted, Reported):
            return state.tasks.get(wanted.id)
        if isinstance(wanted, Wake):
            member = state.named(wanted.who)
            return state.tasks.get(member.task_id or "") if member else here
        return here
