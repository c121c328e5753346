"""The skill: hears messages, answers URLS."""

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

from culture.config.skills import UrlIndexConfig as Wanted
from culture.protocol.message import Message
from culture.protocol.names import is_channel
from culture.protocol.numerics import Numeric
from culture.protocol.vocabulary import ExtensionVerb
from culture.server.commands import Later, command
from culture.server.context import Context
from culture.server.errors import Failed, Refused
from culture.server.events import ChannelRenamed, Redacted, Said, nick_of
from culture.server.skill import Host, Skill, hook
from culture.skills.urlindex import query
from culture.skills.urlindex.answers import notices, rows
from culture.skills.urlindex.channel_access import ChannelAccess
from culture.skills.urlindex.facts import Fact, LinkPage, MessageWithLinks, Moved, RedactedMessage
from culture.skills.urlindex.links import may_link
from culture.skills.urlindex.search import IndexUnreadable, LinkReader
from culture.skills.urlindex.store import UrlIndexStore
from culture.skills.urlindex.writer import UrlIndexWriter

_FILE = "links.db"
_READERS = 2  # threads for each kind of question
MOST_SEARCHES = 20
"""So many may wait or be under way, each of which may take a second."""
_OPENING = 5.0  # seconds to wait for the file before clients come
_PATIENCE = 1.0  # seconds for a search; and for what was just said to be on disk before it


class UrlIndex(Skill):
    """Remembers the links shared in channels: who, where, when, how often, and what was said with them."""

    name = "urlindex"
    Settings = Wanted

    def __init__(self, host: Host, settings: Wanted) -> None:
        super().__init__(host, settings)
        self._rows = settings.rows
        self._doors = ChannelAccess(host)
        path = host.folder / _FILE
        self._open = partial(UrlIndexStore, path, settings.keep)
        self._reader = LinkReader(path, _PATIENCE)
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="urlindex-reader")
        self._searchers = ThreadPoolExecutor(_READERS, thread_name_prefix="urlindex-searcher")
        self._searches = 0
        self._writer: UrlIndexWriter | None = None

    def places(self) -> Iterable[object]:
        """Besides the skill itself, what watches the channels' doors."""
        return (self, self._doors)

    async def start(self) -> None:
        """Open the file; one that is not to be had yet is tried again beside everything else."""
        writer = self._writer = UrlIndexWriter(self._open, self.host.tell_operators, self.host.failed)
        writer.start()
        with suppress(TimeoutError):
            async with asyncio.timeout(_OPENING):
                await writer.opened.wait()

    async def stop(self) -> None:
        """Write what is left and close it."""
        if self._writer is not None:
            await self._writer.stop()
        for threads in (self._readers, self._searchers):
            threads.shutdown(wait=False, cancel_futures=True)

    @hook(Said)
    def hear(self, said: Said) -> None:
        """Take a message to a whole channel that may hold links; what is private, or for some of them, is not."""
        if not may_link(said.text) or said.status or not is_channel(said.target):
            return
        channel = self.host.network.channel(said.target)
        room = self._doors.room(channel, said.closed)
        if room is not None:
            name = said.target if channel is None else channel.name
            self._write(MessageWithLinks(name, room, nick_of(said.source), said.id.at, said.id.msgid, said.text))

    @hook(Redacted)
    def forget(self, event: Redacted) -> None:
        """What is taken back was not shared."""
        if is_channel(event.target):
            self._write(RedactedMessage(event.msgid))

    @hook(ChannelRenamed)
    def move(self, event: ChannelRenamed) -> None:
        """The links stay with the channel."""
        self._write(Moved(event.channel, event.new))

    @command(ExtensionVerb.URLS)
    def urls(self, ctx: Context, message: Message) -> Later:
        """``URLS #channel [how many]``: the links that were shared there, newest first.

        URLS SEARCH :words finds links with these words in or beside them, in all channels that you may read.

        URLS [how many] is for people: the links of the channel that you last spoke in or joined.
        """
        asked = query.read(message.params, self._rows)
        if isinstance(asked, query.LinkSearch):
            view = self._doors.view(ctx.user)
            find = partial(self._reader.search, view, asked.term, asked.most)
            return Later(self._searched(find), lambda found: ctx.pull(rows(self.host.name, "*", found)))
        name = asked.channel or ctx.session.place
        if name is None:
            raise Refused(Numeric.ERR_NEEDMOREPARAMS, ExtensionVerb.URLS)
        since = self._doors.since(ctx.user, name)
        find = partial(self._reader.recent, name, since, asked.most)
        return Later(self._found(self._readers, find), partial(self._show, ctx, name, asked.channel is None))

    def _show(self, ctx: Context, name: str, is_read: bool, found: LinkPage) -> None:
        """Answer about one channel; one that has left no links, and is none, is unknown."""
        channel = ctx.network.channel(name) if found.links else ctx.find_channel(name)
        shown = channel.name if channel is not None else found.links[0].channel
        if is_read:
            ctx.pull(notices(self.host.name, ctx.nick, shown, found))
        else:
            ctx.pull(rows(self.host.name, shown, found))

    async def _found(self, threads: ThreadPoolExecutor, find: Callable[[], LinkPage]) -> LinkPage:
        """What was said before the question is part of the answer, unless the disk is in the way."""
        if self._writer is not None:
            await self._writer.settled(_PATIENCE)
        try:
            return await asyncio.get_running_loop().run_in_executor(threads, find)
        except IndexUnreadable as error:
            raise _unavailable(str(error)) from error

    async def _searched(self, find: Callable[[], LinkPage]) -> LinkPage:
        """The same for a search: nobody who asks for the latest waits for them."""
        if self._searches >= MOST_SEARCHES:
            raise _unavailable("many searches are under way, ask again in a moment")
        self._searches += 1
        try:
            return await self._found(self._searchers, find)
        finally:
            self._searches -= 1

    def _write(self, fact: Fact) -> None:
        if self._writer is not None:
            self._writer.add(fact)


def _unavailable(why: str) -> Failed:
    return Failed(ExtensionVerb.URLS, "UNAVAILABLE", text=f"The links cannot be read now: {why}")
