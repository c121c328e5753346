"""Who said a message that the server itself does not remember any more, for who wants to take it back."""

from culture.protocol.names import is_channel
from culture.server.context import Context
from culture.server.recent import Trace
from culture.skills.history.access import Access
from culture.skills.history.archive import Archive
from culture.skills.history.entry import Entry
from culture.skills.history.store import Store, TooSlow, Unavailable, View


class Older:
    """Finds them for those who are logged in: after so long a nick proves nothing."""

    def __init__(self, archive: Archive, access: Access) -> None:
        self._archive = archive
        self._access = access

    async def find(self, ctx: Context, target: str, msgid: str) -> Trace | None:
        """The message, if it is the asker's own or was said since the channel is what it is; else None."""
        account = ctx.user.account
        if account is None:
            return None
        views = self._views(ctx, target)
        try:
            entry = await self._archive.read(lambda store: _find(store, views, msgid))
        except (Unavailable, TooSlow):
            return None
        if entry is None or (entry.account != account and entry.at < (views[0].closed_since or 0)):
            return None
        return Trace(entry.seq, entry.source, entry.account)

    def _views(self, ctx: Context, target: str) -> tuple[View, ...]:
        if not is_channel(target):
            return self._access.private(ctx, target, events=True).views
        channel = ctx.network.channel(target)
        if channel is None or ctx.user not in channel.members:
            return ()
        return (self._access.member(channel, ctx.user, events=True),)


def _find(store: Store, views: tuple[View, ...], msgid: str) -> Entry | None:
    for view in views:
        position = store.position(view.place, msgid)
        if position is not None:
            for _, entry in store.page(view, position - 1, position + 1, 1, newest=True):
                if entry.verb in ("PRIVMSG", "NOTICE", "TAGMSG"):
                    return entry
    return None
