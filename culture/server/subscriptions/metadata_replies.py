"""Metadata replies (draft/metadata-3): the keys of a target that the asking client may see or subscribed to."""

from collections.abc import Iterable, Iterator

from culture.protocol.message import Message
from culture.protocol.numerics import Numeric
from culture.server.context import Context
from culture.server.core.batches import batched
from culture.server.core.encode import wire
from culture.server.core.state import Channel, User
from culture.server.core.visibility import is_operator, sees_channel, sees_member
from culture.server.events import MetadataSet
from culture.server.subscriptions.metadata import CAPABILITY, is_aware, key_row

VERB = "METADATA"


ALL = "*ALL"


def offer(ctx: Context) -> str:
    """The value of the capability: what a client may do."""
    limits = ctx.config.limits
    return (
        f"before-connect,max-subs={limits.metadata_subs},max-keys={limits.metadata_keys},"
        f"max-key-bytes={limits.metadata_key},max-value-bytes={limits.metadata_value}"
    )


def answer(ctx: Context, rows: Iterable[Message], kind: str, *params: str) -> None:
    """Rows as a batch, or as they are for a client that knows no batches."""
    if "batch" in ctx.session.caps.enabled:
        ctx.session.pull(batched(rows, ctx.router.name, kind, *params))
    else:
        ctx.pull(rows)


def row(ctx: Context, target: str, key: str, value: str | None) -> Message:
    """761, or 766 for nothing, to this client."""
    return key_row(ctx.router.name, ctx.nick, target, key, value)


def may_read(ctx: Context, channel: Channel) -> bool:
    """A channel's metadata is for its members, and for everybody where anybody may come in."""
    if ctx.user in channel.members or is_operator(ctx.user):
        return True
    return sees_channel(ctx.user, channel) and "i" not in channel.flags and channel.key is None


def show_own(ctx: Context) -> None:
    """Part of the welcome: set what the client said before it was in, then tell it all that is known of it."""
    session, user = ctx.session, ctx.user
    early = ctx.parts.subscriptions.early.pop(session, {})
    limit = ctx.config.limits.metadata_keys
    for key, value in early.items():
        known = user.metadata or {}
        if known.get(key) != value and (key in known or len(known) < limit):
            with ctx.parts.subscriptions.made_by(session):
                ctx.publish(MetadataSet(ctx.stamp(), user.source, user.nick, key, value))
    if is_aware(session):
        rows = [row(ctx, user.nick, key, value) for key, value in (user.metadata or {}).items()]
        for line in batched(rows, ctx.router.name, "metadata", user.nick):
            session.send(line)


def show_synced(ctx: Context, target: User | Channel) -> None:
    """What is known of a channel and its members, or of somebody, to a session that hears of them from now on."""
    if is_aware(ctx.session):
        name = target.name if isinstance(target, Channel) else target.nick
        answer(ctx, synced(ctx, target), "metadata", name)


def sync_elsewhere(ctx: Context, target: str) -> None:
    """The user's other sessions see the target from now on too; they may ask for what is known of it."""
    for session in ctx.router.sessions.get(ctx.user, ()):
        if session is not ctx.session and is_aware(session):
            session.push(wire(sync_later(ctx, target)))


def synced(ctx: Context, target: User | Channel) -> Iterator[Message]:
    """Of the keys asked for, all that the target has; for a channel also what those have whom one sees in it."""
    owners: list[User | Channel] = [target]
    if isinstance(target, Channel):
        owners += [each for each in target.members if sees_member(ctx.user, each, target)]
    return _values(ctx, owners)


def synced_all(ctx: Context) -> Iterator[Message]:
    """The same for everybody and everything this session hears about."""
    seen = [
        user
        for user in list(ctx.network.users.values())
        if user is ctx.user
        or not user.channels.isdisjoint(ctx.user.channels)
        or ctx.parts.subscriptions.watches(ctx.session, user)
    ]
    return _values(ctx, [*ctx.user.channels, *seen])


def _values(ctx: Context, owners: list[User | Channel]) -> Iterator[Message]:
    wanted = list(ctx.parts.subscriptions.of(ctx.session))
    for owner in owners:
        kept = owner.metadata
        if kept:
            name = owner.name if isinstance(owner, Channel) else owner.nick
            for key in wanted:
                if key in kept:
                    yield row(ctx, name, key, kept[key])


def sync_later(ctx: Context, target: str) -> Message:
    """Values that were not sent can be asked for, at once."""
    return ctx.numeric(Numeric.RPL_METADATASYNCLATER, target, "0", text=f"Ask with {VERB} {target} SYNC")


def whois_rows(ctx: Context, user: User) -> Iterator[Message]:
    """The lines of WHOIS."""
    if CAPABILITY in ctx.session.caps.enabled:
        for key, value in (user.metadata or {}).items():
            yield ctx.numeric(Numeric.RPL_WHOISKEYVALUE, user.nick, key, "*", value)
