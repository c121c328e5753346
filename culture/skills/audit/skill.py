"""The skill object: turns events of local users into audit entries for the writer."""

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
"""Entries that may wait for the disk; further ones are dropped, and their number is logged."""
_AGENTS = frozenset({UserClass.AGENT.value, UserClass.BOT.value})


class AuditWriter(Keeping[Entry, AuditFile]):
    """The queue of audit entries for the file; dropped entries leave an entry with their number."""

    def note_lost(self, count: int, last: Entry) -> None:
        """Add an audit entry that says how many entries were dropped; ``last``: the last of them."""
        self.add({"at": last["at"], "what": "lost", "lines": count})


class Audit(Skill):
    """Logs what users of this server do; every server of a mesh logs its own users."""

    name = "audit"
    Settings = Wanted
    settings: Wanted

    def __init__(self, host: Host, settings: Wanted) -> None:
        super().__init__(host, settings)
        self._own = host.config.short_name
        self._network = host.network
        self._all = settings.messages == "all"
        self._facts = Facts()
        folder = settings.folder or host.folder
        file = partial(AuditFile, folder, settings.size, settings.files, runtime=host.runtime)
        self._writer = AuditWriter(
            "lines of the audit", MOST, file, host.tell_operators, host.failed, runtime=host.runtime
        )

    async def start(self) -> None:
        """Create the audit folder and start the writer thread."""
        if self.settings.folder is not None:
            await asyncio.to_thread(self.settings.folder.mkdir, 0o700, True, True)
        self._writer.start()

    async def stop(self) -> None:
        """Write the waiting audit entries and end the writer thread."""
        await self._writer.stop()

    @hook(Said)
    def said(self, event: Said) -> None:
        """Log a message from or to agents, or every message if the setting ``messages`` is ``all``."""
        # This runs for every message, and most are between people: check that first.
        if not (event.kind in _AGENTS or self._is_for_agents(event) or self._all):
            return
        if event.id.origin == self._own and event.verb != "TAGMSG":
            self._writer.add(said(event))

    @hook(Redacted)
    def redacted(self, event: Redacted) -> None:
        """Log the redaction of a message by a user of this server."""
        if event.id.origin == self._own:
            self._writer.add(redacted(event))

    @hook(Noted)
    def noted(self, event: Noted) -> None:
        """Log a fact of an agent: question, answer, spend, alert, task or change of state."""
        if event.id.origin == self._own and (entry := self._facts.entry(event)) is not None:
            self._writer.add(entry)

    def _is_for_agents(self, event: Said) -> bool:
        if is_channel(event.target):
            return bool(event.mentions) and any(map(self._is_agent, event.mentions))
        return self._is_agent(event.target)

    def _is_agent(self, nick: str) -> bool:
        user = self._network.user(nick)
        return user is not None and user.kind in _AGENTS
