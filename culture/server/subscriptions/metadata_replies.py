"""Metadata replies (draft/metadata-3): values that the client may see or subscribed to."""

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
    """Return the value of the capability draft/metadata-3: the limits for a client."""
    limits = ctx.config.limits
    return (
        f"before-connect,max-subs={limits.metadata_subs},max-keys={limits.metadata_keys},"
        f"max-key-bytes={limits.metadata_key},max-value-bytes={limits.metadata_value}"
    )


def answer(ctx: Context, rows: Iterable[Message], kind: str, *params: str) -> None:
    """Send lines as an IRCv3 batch of type ``kind``; plain to a client without batches.

    ``params``: the parameters of the batch.
    """
    if "batch" in ctx.session.caps.enabled:
        ctx.session.pull(batched(rows, ctx.router.name, kind, *params))
    else:
        ctx.pull(rows)


def row(ctx: Context, target: str, key: str, value: str | None) -> Message:
    """Return the line that shows this client a metadata value: 761, or 766 if ``value`` is None.

    ``target``: the user or channel that has the ``key``.
    """
    return key_row(ctx.router.name, ctx.nick, target, key, value)


def may_read(ctx: Context, channel: Channel) -> bool:
    """Return whether the client may read a channel's metadata.

    Members and IRC operators may; others only if they may see the channel, and anybody may join it.
    """
    if ctx.user in channel.members or is_operator(ctx.user):
        return True
    return sees_channel(ctx.user, channel) and "i" not in channel.flags and channel.key is None


def show_own(ctx: Context) -> None:
    """Store the metadata that the client set before registration; send it the user's values."""
    session, user = ctx.session, ctx.user
    early = ctx.parts.subscriptions.early.pop(session, {})
    limit = ctx.config.limits.metadata_keys
    for key, value in early.items():
        metadata = user.metadata or {}
        if metadata.get(key) != value and (key in metadata or len(metadata) < limit):
            with ctx.parts.subscriptions.made_by(session):
                ctx.publish(MetadataSet(ctx.stamp(), user.source, user.nick, key, value))
    if is_aware(session):
        rows = [row(ctx, user.nick, key, value) for key, value in (user.metadata or {}).items()]
        for line in batched(rows, ctx.router.name, "metadata", user.nick):
            session.send(line)


def show_synced(ctx: Context, target: User | Channel) -> None:
    """Send the session the subscribed metadata of a user, or of a channel and its members.

    Does nothing for a client without metadata.
    """
    if is_aware(ctx.session):
        name = target.name if isinstance(target, Channel) else target.nick
        answer(ctx, synced(ctx, target), "metadata", name)


def sync_elsewhere(ctx: Context, target: str) -> None:
    """Send 774 to the user's other sessions: they can now request the metadata of ``target``."""
    for session in ctx.router.sessions.get(ctx.user, ()):
        if session is not ctx.session and is_aware(session):
            session.push(wire(sync_later(ctx, target)))


def synced(ctx: Context, target: User | Channel) -> Iterator[Message]:
    """Yield the subscribed metadata of a user, or of a channel and those members one may see."""
    owners: list[User | Channel] = [target]
    if isinstance(target, Channel):
        owners += [each for each in target.members if sees_member(ctx.user, each, target)]
    return _values(ctx, owners)


def synced_all(ctx: Context) -> Iterator[Message]:
    """Yield the subscribed metadata of every user and channel whose changes this session gets."""
    users = [
        user
        for user in list(ctx.network.users.values())
        if user is ctx.user
        or not user.channels.keys().isdisjoint(ctx.user.channels)
        or ctx.parts.subscriptions.watches(ctx.session, user)
    ]
    return _values(ctx, [*ctx.user.channels, *users])


def _values(ctx: Context, owners: list[User | Channel]) -> Iterator[Message]:
    keys = list(ctx.parts.subscriptions.of(ctx.session))
    for owner in owners:
        values = owner.metadata
        if values:
            name = owner.name if isinstance(owner, Channel) else owner.nick
            for key in keys:
                if key in values:
                    yield row(ctx, name, key, values[key])


def sync_later(ctx: Context, target: str) -> Message:
    """Return the line 774: the client can request the metadata of ``target``."""
    return ctx.numeric(Numeric.RPL_METADATASYNCLATER, target, "0", text=f"Ask with {VERB} {target} SYNC")


def whois_rows(ctx: Context, user: User) -> Iterator[Message]:
    """Yield the user's metadata as lines of a WHOIS reply; none for a client without metadata."""
    if CAPABILITY in ctx.session.caps.enabled:
        for key, value in (user.metadata or {}).items():
            yield ctx.numeric(Numeric.RPL_WHOISKEYVALUE, user.nick, key, "*", value)
