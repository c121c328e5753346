"""The skill object: collects links from channel messages and answers URLS."""

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
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
from culture.skills.urlindex.channel_access import ChannelAccess
from culture.skills.urlindex.facts import Fact, LinkPage, MessageWithLinks, Moved, RedactedMessage
from culture.skills.urlindex.links import may_link
from culture.skills.urlindex.store import IndexUnreadable, LinkReader, UrlIndexStore, UrlIndexWriter
from culture.skills.urlindex.verb import LinkSearch, notices, parse_query, rows

_FILE = "links.db"
_READERS = 2  # threads per kind of query
MOST_SEARCHES = 20
"""Searches waiting or running, at most; each may take a second."""
_OPEN_TIMEOUT = 5.0  # seconds to wait for the file at the start
_PATIENCE = 1.0  # seconds for a query, and for earlier messages to reach the disk before it


class UrlIndex(Skill):
    """Indexes links shared in channels, with nick, time, count and the text around each link."""

    name = "urlindex"
    Settings = Wanted

    def __init__(self, host: Host, settings: Wanted) -> None:
        super().__init__(host, settings)
        self._rows = settings.rows
        self._access = ChannelAccess(host)
        path = host.folder / _FILE
        self._open = partial(UrlIndexStore, path, settings.keep, runtime=host.runtime)
        self._reader = LinkReader(path, _PATIENCE, runtime=host.runtime)
        self._readers = host.runtime.pool(_READERS, "urlindex-reader")
        self._searchers = host.runtime.pool(_READERS, "urlindex-searcher")
        self._searches = 0
        self._writer: UrlIndexWriter | None = None

    def places(self) -> Iterable[object]:
        """Return the objects whose methods are hooks and commands: the skill and the channel access."""
        return (self, self._access)

    async def start(self) -> None:
        """Open the index's file within five seconds, else keep trying in the background."""
        host = self.host
        writer = self._writer = UrlIndexWriter(self._open, host.tell_operators, host.failed, runtime=host.runtime)
        writer.start()
        with suppress(TimeoutError):
            async with asyncio.timeout(_OPEN_TIMEOUT):
                await writer.opened.wait()

    async def stop(self) -> None:
        """Write the waiting messages, close the index's file and end the threads."""
        if self._writer is not None:
            await self._writer.stop()
        for threads in (self._readers, self._searchers):
            threads.shutdown(wait=False, cancel_futures=True)

    @hook(Said)
    def on_said(self, said: Said) -> None:
        """Index the links of a message to a channel.

        Private messages, and messages to a channel's operators or voiced users only, are skipped.
        """
        if not may_link(said.text) or said.status or not is_channel(said.target):
            return
        channel = self.host.network.channel(said.target)
        room = self._access.room(channel, said.closed)
        if room is not None:
            name = said.target if channel is None else channel.name
            self._write(MessageWithLinks(name, room, nick_of(said.source), said.id.at, said.id.msgid, said.text))

    @hook(Redacted)
    def on_redacted(self, event: Redacted) -> None:
        """Remove the links of a redacted message from the index."""
        if is_channel(event.target):
            self._write(RedactedMessage(event.msgid))

    @hook(ChannelRenamed)
    def on_renamed(self, event: ChannelRenamed) -> None:
        """Give the links of a renamed channel its new name in the index."""
        self._write(Moved(event.channel, event.new))

    @command(ExtensionVerb.URLS)
    def urls(self, ctx: Context, message: Message) -> Later:
        """``URLS #channel [how many]``: the links that were shared there, newest first.

        URLS SEARCH :words finds links with these words in or beside them, in all channels that you may read.

        URLS [how many] is for people: the links of the channel that you last spoke in or joined.
        """
        request = parse_query(message.params, self._rows)
        if isinstance(request, LinkSearch):
            view = self._access.view(ctx.user)
            find = partial(self._reader.search, view, request.term, request.most)
            return Later(self._run_search(find), lambda found: ctx.pull(rows(self.host.name, "*", found)))
        name = request.channel or ctx.session.place
        if name is None:
            raise Refused(Numeric.ERR_NEEDMOREPARAMS, ExtensionVerb.URLS)
        since = self._access.since(ctx.user, name)
        find = partial(self._reader.recent, name, since, request.most)
        return Later(self._run(self._readers, find), partial(self._show, ctx, name, request.channel is None))

    def _show(self, ctx: Context, name: str, is_read: bool, found: LinkPage) -> None:
        """Send the links of the channel ``name`` to the client.

        If there are none and the channel does not exist, the client gets the error 403. ``is_read``: a person reads
        the links, so they are sent as notices.
        """
        channel = ctx.network.channel(name) if found.links else ctx.find_channel(name)
        shown = channel.name if channel is not None else found.links[0].channel
        if is_read:
            ctx.pull(notices(self.host.name, ctx.nick, shown, found))
        else:
            ctx.pull(rows(self.host.name, shown, found))

    async def _run(self, threads: Executor, find: Callable[[], LinkPage]) -> LinkPage:
        """Return the result of the query ``find``, which runs in a thread of ``threads``.

        It starts when earlier messages are on disk, or after ``_PATIENCE`` seconds.
        """
        if self._writer is not None:
            await self._writer.settled(_PATIENCE)
        try:
            return await asyncio.get_running_loop().run_in_executor(threads, find)
        except IndexUnreadable as error:
            raise _unavailable(str(error)) from error

    async def _run_search(self, find: Callable[[], LinkPage]) -> LinkPage:
        """Return the result of the search ``find``, which runs in threads of its own.

        So it does not delay other queries.
        """
        if self._searches >= MOST_SEARCHES:
            raise _unavailable("too many searches are running, try again in a moment")
        self._searches += 1
        try:
            return await self._run(self._searchers, find)
        finally:
            self._searches -= 1

    def _write(self, fact: Fact) -> None:
        if self._writer is not None:
            self._writer.add(fact)


def _unavailable(why: str) -> Failed:
    return Failed(ExtensionVerb.URLS, "UNAVAILABLE", text=f"The link index is not available: {why}")
