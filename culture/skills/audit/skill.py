"""The skill: hears what people and agents of this server do, and has it written by a thread of its own."""

import asyncio
from collections import deque
from contextlib import suppress
from itertools import islice

from culture.config.skills import Audit as Wanted
from culture.protocol.names import is_channel
from culture.protocol.vocabulary import UserClass
from culture.server.events import Noted, Redacted, Said
from culture.server.skill import Host, Skill, hook
from culture.skills.audit.entries import Entry, Facts, line, redacted, said
from culture.skills.audit.file import AuditFile

MOST = 20_000
"""So many lines may wait for the disk; what comes then is lost, and how many were is written."""
_GROUP = 500
_AGAIN = 1.0
_AGENTS = frozenset({UserClass.AGENT.value, UserClass.BOT.value})


class Audit(Skill):
    """What was done on this server; each writes of its own users, so that in a mesh everything is written once."""

    name = "audit"
    Settings = Wanted
    settings: Wanted

    def __init__(self, host: Host, settings: Wanted) -> None:
        super().__init__(host, settings)
        self._own = host.config.short_name
        self._network = host.network
        self._all = settings.messages == "all"
        self._file = AuditFile(settings.folder or host.folder, settings.size, settings.files)
        self._facts = Facts()
        self._waiting: deque[Entry] = deque()
        self._news, self._end = asyncio.Event(), asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._lost = 0
        self._is_troubled = False

    async def start(self) -> None:
        """Write from now on."""
        if self.settings.folder is not None:
            await asyncio.to_thread(self.settings.folder.mkdir, 0o700, True, True)
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Write what waits, if it can be written."""
        self._end.set()
        self._news.set()
        if self._task is not None:
            await self._task
        await asyncio.to_thread(self._file.close)

    @hook(Said)
    def said(self, event: Said) -> None:
        """Somebody here said something, as far as agents are concerned or everything is wanted."""
        # Nearly everything is between people, and this is on the way of every message.
        if not (event.kind in _AGENTS or self._is_for_agents(event) or self._all):
            return
        if event.id.origin == self._own and event.verb != "TAGMSG":
            self._add(said(event))

    @hook(Redacted)
    def redacted(self, event: Redacted) -> None:
        """Somebody here took a message back."""
        if event.id.origin == self._own:
            self._add(redacted(event))

    @hook(Noted)
    def noted(self, event: Noted) -> None:
        """An agent here asked, was answered, spent, warned, or is in another state."""
        if event.id.origin == self._own and (entry := self._facts.entry(event)) is not None:
            self._add(entry)

    def _is_for_agents(self, event: Said) -> bool:
        if is_channel(event.target):
            return bool(event.mentions) and any(map(self._is_agent, event.mentions))
        return self._is_agent(event.target)

    def _is_agent(self, nick: str) -> bool:
        user = self._network.user(nick)
        return user is not None and user.kind in _AGENTS

    def _add(self, entry: Entry) -> None:
        if len(self._waiting) >= MOST:
            self._lost += 1
            return
        self._waiting.append(entry)
        self._news.set()

    async def _run(self) -> None:
        try:
            while self._waiting or not self._end.is_set():
                await self._news.wait()
                self._news.clear()
                while self._waiting and (await self._write() or await self._wait_for_better()):
                    pass
                if self._waiting:
                    return
        except Exception as error:
            self.host.failed(error)

    async def _wait_for_better(self) -> bool:
        """The disk is full: is it worth trying again?"""
        with suppress(TimeoutError):
            async with asyncio.timeout(_AGAIN):
                await self._end.wait()
        return not self._end.is_set()

    async def _write(self) -> bool:
        """Write a group of what waits; did it go?"""
        group = list(islice(self._waiting, _GROUP))
        try:
            await asyncio.to_thread(self._append, group)
        except OSError as error:
            if not self._is_troubled:
                self._is_troubled = True
                self.host.tell_operators(f"the audit cannot be written ({error}); up to {MOST} lines wait in memory")
            return False
        for _ in group:
            self._waiting.popleft()
        if not self._waiting and self._is_troubled:
            self.host.tell_operators(f"the audit is written again; lines that were lost: {self._lost}")
            lost, self._lost, self._is_troubled = self._lost, 0, False
            if lost:
                self._add({"at": group[-1]["at"], "what": "lost", "lines": lost})
        return True

    def _append(self, group: list[Entry]) -> None:
        self._file.append([line(entry) for entry in group])
