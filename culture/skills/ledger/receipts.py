"""RECEIPT: the recipient of a message reports how far it has come; its sender is notified."""

import json
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from culture.protocol.message import Message
from culture.protocol.names import fold, is_channel, owner
from culture.protocol.vocabulary import ExtensionVerb, FactKind, Receipt
from culture.server.commands import Later, command
from culture.server.context import Context
from culture.server.core.recent_messages import Trace
from culture.server.errors import Failed
from culture.server.events import Noted, Receipted, nick_of
from culture.server.skill import Host

MOST_AT_ONCE = 12
"""Messages per line, at most."""
_MAX_REMEMBERED = 20_000
_STATES = (Receipt.DELIVERED.value, Receipt.INJECTED.value, Receipt.ANSWERED.value)
_Found = list[tuple[str, Trace | None, bool]]


class ReceiptRelay:
    """Checks receipts, notifies the senders of the messages, and stores receipts as facts."""

    def __init__(self, host: Host, stored: Callable[[Callable[[], None]], Later]) -> None:
        self._host = host
        self._stored = stored
        self._recent: OrderedDict[tuple[str, str, str], None] = OrderedDict()

    @command(ExtensionVerb.RECEIPT, params=3)
    def receipt(self, ctx: Context, message: Message) -> Later:
        """``RECEIPT state #channel|nick msgid [msgid …]``: report how far messages have come.

        The state is ``delivered``, ``injected`` or ``answered``; the channel or sender is that of the messages.
        """
        state, given, *msgids = message.params
        if state not in _STATES:
            raise Failed(
                ExtensionVerb.RECEIPT, "INVALID_STATE", state, text=f"A receipt is one of {', '.join(_STATES)}"
            )
        if len(msgids) > MOST_AT_ONCE:
            raise Failed(
                ExtensionVerb.RECEIPT, "TOO_MANY", state, given, text=f"At most {MOST_AT_ONCE} messages in a line"
            )
        place = self._place(ctx, given)
        return Later(self._find(ctx, place, msgids), partial(self._publish, ctx, state, place))

    def _place(self, ctx: Context, given: str) -> str:
        """Return the name of a channel that the client is in, or the nick ``given``.

        ``Failed`` if the client is not in the channel.
        """
        if not is_channel(given):
            return given
        channel = ctx.network.channel(given)
        if channel is None or ctx.user not in channel.members:
            raise Failed(ExtensionVerb.RECEIPT, "INVALID_TARGET", given, text="You are not in that channel")
        return channel.name

    async def _find(self, ctx: Context, place: str, msgids: Sequence[str]) -> _Found:
        """Return, for each msgid, the message's author (or None) and whether it is in memory.

        ``place``: the channel, or the nick of the sender.
        """
        found: _Found = []
        recent, older = ctx.parts.recent, ctx.parts.offers.find_older
        target = place if is_channel(place) else ctx.user.nick
        for msgid in msgids:
            trace = recent.find(target, msgid)
            is_recent = trace is not None
            if trace is None and older is not None:
                trace = await older(ctx, place, msgid, True)
            found.append((msgid, trace, is_recent))
        return found

    def _publish(self, ctx: Context, state: str, place: str, found: _Found) -> Later:
        keys = [(fold(ctx.nick), msgid, state) for msgid, _, _ in found]
        for msgid, trace, is_recent in found:
            if trace is None or self._is_own(ctx, trace, is_recent):
                text = "There is no such message for you, or it is too old"
                ctx.fail(Failed(ExtensionVerb.RECEIPT, "UNKNOWN_MSGID", place, msgid, text=text))
            elif not self._is_repeated(ctx, msgid, state):
                self._notify(ctx, msgid, state, trace, is_recent)
        return self._stored(lambda: self._forget(keys))

    def _forget(self, keys: Iterable[tuple[str, str, str]]) -> None:
        """Forget these receipts, which could not be stored, so that clients may send them again.

        ``keys``: nick, kind and key of each.
        """
        for key in keys:
            self._recent.pop(key, None)

    def _is_own(self, ctx: Context, trace: Trace, is_recent: bool) -> bool:
        if is_recent:
            return ctx.parts.recent.is_by(trace, ctx.user)
        return trace.account == ctx.user.account

    def _is_repeated(self, ctx: Context, msgid: str, state: str) -> bool:
        """Return whether the client has sent this receipt before; record it if not.

        A receipt is the ``state`` (such as ``delivered``) of the message ``msgid``.
        """
        key = (fold(ctx.nick), msgid, state)
        if key in self._recent:
            return True
        self._recent[key] = None
        if len(self._recent) > _MAX_REMEMBERED:
            self._recent.popitem(last=False)
        return False

    def _notify(self, ctx: Context, msgid: str, state: str, trace: Trace, is_recent: bool) -> None:
        value = json.dumps({"state": state})
        if ctx.user.account is not None or not ctx.network.knows_people:  # facts need an account where accounts exist
            ctx.publish(Noted(ctx.stamp(), ctx.user.source, FactKind.RECEIPT, f"{msgid}/{state}", value))
        sender = self._sender(ctx, trace, is_recent)
        if sender is not None:
            ctx.publish(Receipted(ctx.stamp(), ctx.user.source, sender, msgid, state))

    def _sender(self, ctx: Context, trace: Trace, is_recent: bool) -> str | None:
        """Return the present nick of a message's sender, or None if the sender is unknown.

        ``trace``: the author as recorded. If changes of the nick are not known, as for a message that is no longer in
        memory (not ``is_recent``), a user who has the nick now counts only with the sender's account.
        """
        nick = nick_of(trace.source)
        now = ctx.parts.recent.nick_now(trace) if is_recent else None
        if now is not None or (is_recent and owner(fold(nick)) == self._host.config.short_name):
            return now
        user = ctx.network.user(nick)  # a user of another server may have left and come back in a netsplit
        return nick if user is None or user.account == trace.account else None
