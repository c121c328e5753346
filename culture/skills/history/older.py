"""Who said a message that the server itself does not remember any more, for who takes it back or got it."""

from collections.abc import Sequence

from culture.protocol.names import is_channel
from culture.server.context import Context
from culture.server.core.recent_messages import Trace
from culture.server.events import Said
from culture.skills.history.access import Access
from culture.skills.history.archive import Archive
from culture.skills.history.entry import Entry, event_of
from culture.skills.history.store import Damaged, Store, TooSlow, Unavailable, View

_TRIES = 3  # of a second each, for the disk
_RANKS = ("", "@", "+")


class Older:
    """Finds them for those who are logged in: after so long a nick proves nothing."""

    def __init__(self, archive: Archive, access: Access) -> None:
        self._archive = archive
        self._access = access

    async def find(self, ctx: Context, target: str, msgid: str, reading: bool) -> Trace | None:
        """The message, if it is the asker's own, was said since the channel is what it is, or is only to be read.

        ``reading`` is for who got it, and knows its id by that: nothing of it is shown.
        """
        account = ctx.user.account
        if account is None:
            return None
        views = self._views(ctx, target, reading)
        party = self._access.reader(ctx.user).party if reading and not is_channel(target) else None
        try:
            entry = await self._archive.read(lambda store: _find(store, views or _talks(store, party, msgid), msgid))
        except (Unavailable, TooSlow):
            return None
        if entry is None:
            return None
        if not reading and entry.account != account and entry.at < (views[0].closed_since or 0):
            return None
        return Trace(entry.seq, entry.source, entry.account)

    async def stored(self, msgid: str) -> Said | None:
        """The message with this id, whoever may read it; LookupError when that cannot be told now, or not any more."""
        why = ""
        for _ in range(_TRIES):
            try:
                return await self._archive.read_all(lambda store: _stored(store, msgid))
            except (Unavailable, TooSlow, Damaged) as error:
                why = str(error)
        raise LookupError(f"the history cannot be read now: {why}")

    def _views(self, ctx: Context, target: str, reading: bool) -> tuple[View, ...]:
        if not is_channel(target):
            # Of who wrote to us and is gone, or lives on another server, the nick does not tell the account.
            return () if reading else self._access.private(ctx, target, events=True).views
        channel = ctx.network.channel(target)
        if channel is None or ctx.user not in channel.members:
            return ()
        view = self._access.member(channel, ctx.user, events=True)
        # What a server that was killed learns from its peers counts as said behind closed doors.
        return (view._replace(closed_since=0) if reading else view,)


def _talks(store: Store, party: str | None, msgid: str) -> tuple[View, ...]:
    """The private conversations of a party that the message is in."""
    return tuple(View(place, events=True) for place in store.arrivals(msgid) if party in place.split(" "))


def find_message(store: Store, msgid: str) -> Entry | None:
    """The message with this id, whoever may read it; None where there is none, or not any more."""
    return _find(store, [View(place, _RANKS, closed_since=0, events=True) for place in store.arrivals(msgid)], msgid)


def _stored(store: Store, msgid: str) -> Said | None:
    entry = find_message(store, msgid)
    if entry is None:
        if store.arrivals(msgid):
            raise LookupError("the message was taken back")
        return None
    said = event_of(entry)
    assert isinstance(said, Said)
    return said


def _find(store: Store, views: Sequence[View], msgid: str) -> Entry | None:
    for view in views:
        position = store.position(view.place, msgid)
        if position is not None:
            for _, entry in store.page(view, position - 1, position + 1, 1, newest=True):
                if entry.verb in ("PRIVMSG", "NOTICE", "TAGMSG"):
                    return entry
    return None
