"""RECEIPT: whoever a message was for says how far it has come, and who said it is told."""

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
"""So many messages one line may be about."""
_REMEMBERED = 20_000
_STATES = (Receipt.DELIVERED.value, Receipt.INJECTED.value, Receipt.ANSWERED.value)
_Found = list[tuple[str, Trace | None, bool]]


class ReceiptRelay:
    """Checks that the message was really for whom it says, tells its sender, and notes it in the ledger."""

    def __init__(self, host: Host, kept: Callable[[Callable[[], None]], Later]) -> None:
        self._host = host
        self._kept = kept
        self._given: OrderedDict[tuple[str, str, str], None] = OrderedDict()

    @command(ExtensionVerb.RECEIPT, params=3)
    def receipt(self, ctx: Context, message: Message) -> Later:
        """``RECEIPT delivered|injected|answered #channel|nick msgid [msgid …]``: so far have these come with me."""
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
        return Later(self._find(ctx, place, msgids), partial(self._give, ctx, state, place))

    def _place(self, ctx: Context, given: str) -> str:
        """The channel that the asker is in, or the nick of who wrote to them."""
        if not is_channel(given):
            return given
        channel = ctx.network.channel(given)
        if channel is None or ctx.user not in channel.members:
            raise Failed(ExtensionVerb.RECEIPT, "INVALID_TARGET", given, text="You are not in that channel")
        return channel.name

    async def _find(self, ctx: Context, place: str, msgids: Sequence[str]) -> _Found:
        """Who said each of the messages, and whether the server remembers it itself."""
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

    def _give(self, ctx: Context, state: str, place: str, found: _Found) -> Later:
        keys = [(fold(ctx.nick), msgid, state) for msgid, _, _ in found]
        for msgid, trace, is_recent in found:
            if trace is None or self._is_own(ctx, trace, is_recent):
                text = "There is no such message for you, or it is too old"
                ctx.fail(Failed(ExtensionVerb.RECEIPT, "UNKNOWN_MSGID", place, msgid, text=text))
            elif not self._is_given(ctx, msgid, state):
                self._tell(ctx, msgid, state, trace, is_recent)
        return self._kept(lambda: self._forget(keys))

    def _forget(self, keys: Iterable[tuple[str, str, str]]) -> None:
        """They could not be kept: said again they are new."""
        for key in keys:
            self._given.pop(key, None)

    def _is_own(self, ctx: Context, trace: Trace, is_recent: bool) -> bool:
        if is_recent:
            return ctx.parts.recent.is_by(trace, ctx.user)
        return trace.account == ctx.user.account

    def _is_given(self, ctx: Context, msgid: str, state: str) -> bool:
        """Was it said before? Whoever is not sure whether it was heard says it again."""
        key = (fold(ctx.nick), msgid, state)
        if key in self._given:
            return True
        self._given[key] = None
        if len(self._given) > _REMEMBERED:
            self._given.popitem(last=False)
        return False

    def _tell(self, ctx: Context, msgid: str, state: str, trace: Trace, is_recent: bool) -> None:
        value = json.dumps({"state": state})
        if ctx.user.account is not None or not ctx.network.knows_people:  # the ledger has nothing by nobody
            ctx.publish(Noted(ctx.stamp(), ctx.user.source, FactKind.RECEIPT, f"{msgid}/{state}", value))
        sender = self._sender(ctx, trace, is_recent)
        if sender is not None:
            ctx.publish(Receipted(ctx.stamp(), ctx.user.source, sender, msgid, state))

    def _sender(self, ctx: Context, trace: Trace, is_recent: bool) -> str | None:
        """The nick that whoever said it has now; after long only their account proves who they are."""
        nick = nick_of(trace.source)
        now = ctx.parts.recent.nick_now(trace) if is_recent else None
        if now is not None or (is_recent and owner(fold(nick)) == self._host.config.short_name):
            return now
        user = ctx.network.user(nick)  # of another server they may have seemed to leave, when that was split off
        return nick if user is None or user.account == trace.account else None
