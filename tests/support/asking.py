"""Questions without a server: the board as it is, and around it whoever a test lets speak."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import cast

from culture.clients.shared.inbox import Inbox, Mail
from culture.clients.shared.notes import Notes
from culture.clients.shared.once import Once
from culture.clients.shared.questions import Answer, Questions, QuestionStore, Taken
from culture.clients.shared.questions.around import Around
from culture.clients.shared.records import Records
from culture.config.agents import TrustConfig
from culture.protocol.vocabulary import ClientTag, UserClass
from culture.transport import ChannelMember, IRCTransport, Message, NotSent
from tests.support.clock import ClockedRuntime

NICK = "spark-claude"
NO_TAGS: Mapping[str, str] = {}
_msgids = count(1)


@dataclass
class Room:
    """A channel as the transport knows it."""

    agents: Sequence[str] = ("spark-a", "spark-b", "spark-c")
    chiefs: Sequence[str] = ("spark-ori",)
    lines: list[tuple[str, str]] = field(default_factory=list)
    tags: list[Mapping[str, str]] = field(default_factory=list)
    """With which each was said."""
    accounts: Mapping[str, str] = field(default_factory=dict)
    own_account: str | None = None
    names_lines: bool = True
    """Whether the server tells the ids of what is said."""
    broken: bool = False
    lost: bool = False
    """Whether the connection breaks once something is said, before anybody knows that it was."""
    cut: bool = False
    """Whether it breaks once everybody has read what was said."""
    away: bool = False
    looks: int = 0
    """How often somebody wanted to know whether there is a connection."""
    is_behind: bool = False
    on_line: Callable[[str], None] = lambda text: None
    """Who reads a line before its sender knows that it is stored."""
    arrives: asyncio.Event | None = None
    """What is said is on its way until this is set."""

    @property
    def settled(self) -> bool:
        self.looks += 1
        return not self.away

    @property
    def view(self) -> "Room":
        return self

    def operators(self, channel: str) -> list[str]:
        return list(self.chiefs) if channel == "#general" else []

    def members(self, place: str) -> list[ChannelMember]:
        return [ChannelMember(nick, kind=UserClass.AGENT) for nick in self.agents]

    async def send_who(self, place: str) -> list[ChannelMember]:
        here = [ChannelMember(nick, kind=UserClass.AGENT, account=self.accounts.get(nick)) for nick in self.agents]
        return [*here, ChannelMember(NICK, kind=UserClass.AGENT, account=self.own_account)]

    async def send_privmsg(
        self, place: str, text: str, tags: Mapping[str, str] = NO_TAGS, *, skip: int = 0
    ) -> list[str]:
        if self.arrives is not None:
            await self.arrives.wait()
        if self.broken:
            raise NotSent("no connection")
        if self.lost:
            self.tags.append(tags)
            raise NotSent("the connection was lost", uncertain=True)
        if skip:
            return []
        self.lines.append((place, text))
        self.tags.append(tags)
        self.on_line(text)
        if self.cut:
            raise NotSent("the connection was lost", uncertain=True)
        return [f"posted.{len(self.lines)}"] if self.names_lines else []

    async def request(self, verb: str, *params: str) -> list[object]:
        return []


class Scene:
    """One agent with its questions; ``say`` is somebody's word to it."""

    def __init__(self, folder: Path, trust: TrustConfig | None) -> None:
        self.now = datetime.now(UTC).timestamp()
        self.room = Room()
        self.notices: list[tuple[str, str]] = []
        self.alerts: list[tuple[str, str]] = []
        self.acts: list[str] = []
        self.whispers: list[str] = []
        self.task = "clean up"
        self._trust = trust
        self._file = folder / "inbox.db"
        self._asking: list[asyncio.Task[Answer]] = []
        self.open()

    def open(self) -> None:
        """The daemon starts: everything is as the file has it."""
        self.records = Records(self._file)
        self.inbox = Inbox(self.records, Notes(self.records))
        irc = cast(IRCTransport, self.room)
        self.once = Once(NICK, self.records, irc)
        around = Around(
            irc,
            self.once,
            lambda place, text, notice=False: self.notices.append((place, text)),
            lambda event, text, **more: self.alerts.append((event, text)),
            lambda: None,
            lambda: self.task,
            lambda action, question, awaited: self.acts.append(action),
            self.inbox.take_about,
            self.inbox.read,
            self.inbox.reopen,
            lambda key, place, text, question: self.inbox.news(key, place, text, question=question),
            self.whispers.append,
            lambda: {ClientTag.HOPS.value: "4"},
        )
        self.questions = Questions(
            NICK, QuestionStore(self.records, runtime=ClockedRuntime(lambda: self.now)), around, self._trust
        )

    def kill(self) -> None:
        """Nothing is saved, nothing is told."""
        for task in self._asking:
            task.cancel()
        self._asking.clear()
        self.questions.stop()
        self.records.close()

    async def ask(
        self,
        text: str = "Delete 47 files?",
        options: Sequence[str] = ("yes", "no", "abort"),
        *,
        place: str = "#general",
        timeout: float | None = None,
        tool: str = "",
        bound: float | None = None,
        in_turn: bool = False,
    ) -> "asyncio.Task[Answer]":
        """The agent asks; what it gets is the task's result."""
        asking = asyncio.create_task(
            self.questions.ask(place, text, timeout, options, tool, bound=bound, in_turn=in_turn)
        )
        self._asking.append(asking)
        await self.settled()
        return asking

    async def again(self, id: str, reply: str | None = None) -> "asyncio.Task[Answer]":
        """The agent waits on."""
        asking = asyncio.create_task(self.questions.again(id, reply))
        self._asking.append(asking)
        await self.settled()
        return asking

    async def settled(self) -> None:
        """Let everything that is ready happen."""
        for _ in range(10):
            await asyncio.sleep(0)

    def say(
        self,
        sender: str,
        text: str,
        kind: UserClass = UserClass.HUMAN,
        *,
        account: str | None = None,
        place: str = "#general",
        private: bool = False,
        reply: str = "",
        msgid: str = "",
        missed: bool = False,
        at: float | None = None,
    ) -> Taken | None:
        """Somebody says this to the agent, and the daemon does with it what it does."""
        message = Message(
            sender if private else place,
            sender,
            text,
            datetime.fromtimestamp(self.now if at is None else at, UTC),
            msgid or f"said.{next(_msgids)}",
            account,
            kind,
            private,
            tags={ClientTag.REPLY.value: reply} if reply else {},
            missed=missed,
        )
        if self.inbox.knows(message.msgid):
            return None
        taken = self.questions.offer(message)
        if taken is None:
            self.inbox.receive(message)
        else:
            self.inbox.receive(message, handled=taken.handled, question=taken.question, remark=taken.remark)
        return taken

    def told(self, nick: str) -> str:
        """The last notice that somebody got."""
        return next((text for place, text in reversed(self.notices) if place == nick), "")

    def mail(self) -> list[Mail]:
        """What the agent will read."""
        return self.inbox.unread()

    def close(self) -> None:
        """The test is over."""
        self.kill()
