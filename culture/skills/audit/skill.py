"""The skill: hears what people and agents of this server do, and has it written by a thread of its own."""

import asyncio
from functools import partial

from culture.config.skills import AuditConfig as Wanted
from culture.protocol.names import is_channel
from culture.protocol.vocabulary import UserClass
from culture.server.events import Noted, Redacted, Said
from culture.server.skill import Host, Skill, hook
from culture.skills.audit.entries import Entry, Facts, redacted, said
from culture.skills.audit.file import AuditFile
from culture.skills.keeping import Keeping

MOST = 20_000
"""So many lines may wait for the disk; what comes then is lost, and how many were is written."""
_AGENTS = frozenset({UserClass.AGENT.value, UserClass.BOT.value})


class AuditWriter(Keeping[Entry, AuditFile]):
    """Lines that wait; those that found no room leave one behind."""

    def note_lost(self, count: int, last: Entry) -> None:
        """Write how many are missing here."""
        self.add({"at": last["at"], "what": "lost", "lines": count})


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
        self._facts = Facts()
        file = partial(AuditFile, settings.folder or host.folder, settings.size, settings.files)
        self._writer = AuditWriter("lines of the audit", MOST, file, host.tell_operators, host.failed)

    async def start(self) -> None:
        """Write from now on."""
        if self.settings.folder is not None:
            await asyncio.to_thread(self.settings.folder.mkdir, 0o700, True, True)
        self._writer.start()

    async def stop(self) -> None:
        """Write what waits, if it can be written."""
        await self._writer.stop()

    @hook(Said)
    def said(self, event: Said) -> None:
        """Somebody here said something, as far as agents are concerned or everything is wanted."""
        # Nearly everything is between people, and this is on the way of every message.
        if not (event.kind in _AGENTS or self._is_for_agents(event) or self._all):
            return
        if event.id.origin == self._own and event.verb != "TAGMSG":
            self._writer.add(said(event))

    @hook(Redacted)
    def redacted(self, event: Redacted) -> None:
        """Somebody here took a message back."""
        if event.id.origin == self._own:
            self._writer.add(redacted(event))

    @hook(Noted)
    def noted(self, event: Noted) -> None:
        """An agent here asked, was answered, spent, warned, or is in another state."""
        if event.id.origin == self._own and (entry := self._facts.entry(event)) is not None:
            self._writer.add(entry)

    def _is_for_agents(self, event: Said) -> bool:
        if is_channel(event.target):
            return bool(event.mentions) and any(map(self._is_agent, event.mentions))
        return self._is_agent(event.target)

    def _is_agent(self, nick: str) -> bool:
        user = self._network.user(nick)
        return user is not None and user.kind in _AGENTS
