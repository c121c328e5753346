"""What channels are set to: of two settings of one thing the one with the greater mark holds, on every server.

Ranks, and modes that nobody has set since, belong to the channel as it was founded: where two servers founded a channel
of the same name while they did not know of each other, the earlier one's hold.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from culture.config.links import LinkConfig as Settings
from culture.federation.belief import fits, with_room
from culture.federation.codec.fields import number
from culture.federation.foundings import FLAGS, Claim, Verdict, begin, keep, set_unmarked, settle, unmarked
from culture.federation.settings import RANK_PARTS, Told, base_flags, founded, line_of
from culture.federation.trust import crosses
from culture.protocol.message import Message
from culture.protocol.modes import ModeChange
from culture.protocol.names import fold, is_channel
from culture.protocol.vocabulary import ChannelMode
from culture.server.core.changes.channels import LATEST, UNMARKED, forget_removed, part_of
from culture.server.core.ids import MICROSECONDS
from culture.server.core.network import Network
from culture.server.core.state import MEMBER_MODES, Channel, Mark
from culture.server.events import Event, Joined, Kicked, MetadataSet, ModeSet, TopicSet
from culture.server.skill import Host

_NEVER = Mark(-1, 0.0, "", 0)
Apply = Callable[[Event, int | None], None]


def burst(network: Network, own: str, settings: Settings) -> Iterator[Message]:
    """One line for each channel that may cross."""
    for channel in network.channels.values():
        if crosses(channel, settings):
            yield line_of(channel, own)


def tags_of(network: Network, event: Event) -> dict[str, str]:
    """What other servers must know of a change of a channel, beside the change: its version, and what we claim."""
    name = event.target if isinstance(event, MetadataSet) else getattr(event, "channel", "")
    channel = network.channel(name) if is_channel(name) else None
    tags: dict[str, str] = {}
    if channel is None:
        return tags
    if isinstance(event, ModeSet | TopicSet | MetadataSet | Joined):
        tags["v"] = str(channel.clock)
    if isinstance(event, ModeSet | Joined):
        claim = Claim.of(channel)
        tags |= {"c": str(claim.founded), "f": claim.flags} if claim.flags else {"c": str(claim.founded)}
    return tags


def change(host: Host, event: Event, tags: Mapping[str, str], apply: Apply) -> Verdict:
    """Make a change from elsewhere so, as far as it is newer than what is set here.

    OURS: the other side should hear what the channel is, since it believes to have founded one that we know longer.
    THEIRS: everybody should, since we believed that.
    """
    version = min(number(tags["v"]), LATEST) if "v" in tags else None
    claim = Claim(number(tags["c"]), tags.get("f", "")) if "c" in tags else None
    if isinstance(event, Kicked):
        event = event._replace(nick=host.network.nick_now(event.nick))
    if isinstance(event, Joined):
        return _join(host, event, claim, version, apply)
    if isinstance(event, ModeSet):
        return _set_modes(host, event, tags, claim, version, apply)
    if isinstance(event, TopicSet):
        part, name = "topic", event.channel
    elif isinstance(event, MetadataSet) and is_channel(event.target):
        part, name = f"meta:{event.key}", event.target
    else:
        apply(event, version)
        return Verdict.SAME
    channel = host.network.channel(name)
    if channel is None:
        keep(host, name, partial(change, host, event, tags, partial(_apply, host)))
    elif _mark(event, version) > channel.marks.get(part, _NEVER):
        apply(event, version)
    return Verdict.SAME


def _mark(event: Event, version: int | None) -> Mark:
    return Mark(version or 0, event.id.at, event.id.origin, event.id.seq)


def _join(host: Host, event: Joined, claim: Claim | None, version: int | None, apply: Apply) -> Verdict:
    channel = host.network.channel(event.channel)
    begins = channel is None or not founded(channel)
    verdict = settle(host, event.channel, claim) if claim is not None and not begins else Verdict.SAME
    apply(event if verdict is not Verdict.OURS else event._replace(status=""), UNMARKED if version is None else version)
    if begins and claim is not None:
        begin(host, event.channel, claim)
        return Verdict.NEW
    return verdict


def _set_modes(
    host: Host, event: ModeSet, tags: Mapping[str, str], claim: Claim | None, version: int | None, apply: Apply
) -> Verdict:
    channel = host.network.channel(event.channel)
    if channel is None:
        keep(host, event.channel, partial(change, host, event, tags, partial(_apply, host)))
        return Verdict.SAME
    ours, theirs = founded(channel), claim.founded if claim is not None else 0
    is_same = not ours or not theirs or ours == theirs
    mark = _mark(event, version)
    meant = (_present(host.network, each) for each in event.changes)
    fresh = tuple(each for each in meant if mark > _last(channel, each) and (is_same or each.mode not in MEMBER_MODES))
    if fresh:
        apply(event._replace(changes=fresh), version)
    if not is_same and theirs < ours:
        # Ranks in a channel that was founded before ours: either it is no more, or we shall hear of it.
        keep(host, event.channel, partial(change, host, event, tags, partial(_apply, host)))
    return Verdict.OURS if not is_same and ours < theirs else Verdict.SAME


def _present(network: Network, change: ModeChange) -> ModeChange:
    """A change of somebody's rank, by the nick that they have now."""
    if change.mode not in MEMBER_MODES or change.param is None:
        return change
    return change._replace(param=network.nick_now(change.param))


def _last(channel: Channel, change: ModeChange) -> Mark:
    """When what the change sets was set before; of a rank: not before its holder came in."""
    last = channel.marks.get(part_of(change), _NEVER)
    if change.mode in MEMBER_MODES and change.param is not None:
        return max(last, channel.joins.get(fold(change.param), _NEVER))
    return last


def _apply(host: Host, event: Event, version: int | None) -> None:
    before, host.network.version = host.network.version, version
    try:
        host.publish(event)
    finally:
        host.network.version = before


def merge(host: Host, told: Told) -> bool:
    """Make the channel what both sides together say; is it any different from what they said?"""
    channel = host.network.channel(told.name)
    if channel is None:
        if told.founded:
            keep(host, told.name, partial(merge, host, told))
        return False
    before = _state(channel)
    if told.lives:
        settle(host, told.name, Claim(told.founded, "".join(told.flags)))
    ranks_hold = founded(channel) == told.founded
    if ranks_hold:
        # When it was founded does not change by it.
        channel.founded = channel.founded or channel.created
        channel.created = min(channel.created, told.created / MICROSECONDS)
    news = {
        part: mark
        for part, mark in told.marks.items()
        if mark > _known(channel, part) and (ranks_hold or not part.startswith(RANK_PARTS))
    }
    with unmarked(host.network):
        _take_topic(host, channel, told, news)
    set_unmarked(host, channel, with_room(channel, list(_changes(channel, told, news, ranks_hold))))
    _take_lists(channel, told, news)
    for key in [part[5:] for part in news if part.startswith("meta:")]:
        kept = channel.metadata or {}
        if told.metadata.get(key) != kept.get(key) and (key not in told.metadata or fits({**kept, **_only(told, key)})):
            with unmarked(host.network):
                host.publish(MetadataSet(host.stamp(), host.name, channel.name, key, told.metadata.get(key)))
    channel.clock = max(channel.clock, told.clock)
    channel.marks.update(news)
    forget_removed(channel)
    _expect(channel, told, news)
    return _state(channel) != before


def _only(told: Told, key: str) -> dict[str, str]:
    return {key: told.metadata[key]}


def _known(channel: Channel, part: str) -> Mark:
    last = channel.marks.get(part, _NEVER)
    return max(last, channel.joins.get(part[2:], _NEVER)) if part.startswith(RANK_PARTS) else last


def _expect(channel: Channel, told: Told, news: Mapping[str, Mark]) -> None:
    """The ranks of those whom we do not know as members yet."""
    present = {fold(user.nick) for user in channel.members}
    for part in news:
        mode, _, key = part.partition(":")
        if part.startswith(RANK_PARTS) and key not in present:
            channel.keep_absent(part, mode in told.ranks.get(key, ""))


def _state(channel: Channel) -> tuple[object, ...]:
    return channel.created, founded(channel), dict(channel.marks), dict(channel.members), base_flags(channel)


def _take_topic(host: Host, channel: Channel, told: Told, news: Mapping[str, Mark]) -> None:
    if "topic" not in news:
        return
    text = told.topic.text if told.topic is not None else ""
    if text != (channel.topic.text if channel.topic is not None else ""):
        stamp = host.stamp()
        by = told.topic.by if told.topic is not None else told.source
        host.publish(TopicSet(stamp._replace(at=told.topic.at) if told.topic else stamp, by, channel.name, text))
    channel.topic = told.topic


def _take_lists(channel: Channel, told: Told, news: Mapping[str, Mark]) -> None:
    """Who put a mask on a list, and when, as it was said there."""
    for mode, entries in told.lists.items():
        for mask, entry in entries.items():
            if f"{mode}:{mask}" in news and mask in channel.lists.get(mode, {}):
                channel.lists[mode][mask] = entry


def _changes(channel: Channel, told: Told, news: Mapping[str, Mark], ranks_hold: bool) -> Iterator[ModeChange]:
    for part in news:
        mode, colon, param = part.partition(":")
        if colon and mode in ("b", "e", "I"):
            is_listed = param in told.lists.get(mode, {})
            if is_listed != (param in channel.lists.get(mode, {})):
                yield ModeChange(is_listed, mode, param)
        elif part in FLAGS and (part in told.flags) != (part in channel.flags):
            yield ModeChange(part in told.flags, part)
    if "k" in news and told.key != channel.key:
        yield ModeChange(told.key is not None, "k", told.key or "*")
    if "l" in news and told.limit != channel.limit:
        yield ModeChange(told.limit is not None, "l", str(told.limit) if told.limit is not None else None)
    shared = None if channel.shared is None else ",".join(channel.shared)
    if ChannelMode.SHARED in news and told.shared != shared:
        yield ModeChange(told.shared is not None, ChannelMode.SHARED.value, told.shared)
    if ranks_hold:
        yield from _rank_changes(channel, told, news)


def _rank_changes(channel: Channel, told: Told, news: Mapping[str, Mark]) -> Iterator[ModeChange]:
    """Ranks that were set later there, and those of the channel's founding that we have not heard of."""
    for user, held in list(channel.members.items()):
        key = fold(user.nick)
        rank = told.ranks.get(key, "")
        for mode in MEMBER_MODES:
            part = f"{mode}:{key}"
            unset = part not in channel.marks and part not in told.marks and mode in rank and key not in channel.joins
            if (part in news or unset) and (mode in rank) != (mode in held):
                yield ModeChange(mode in rank, mode, user.nick)


__all__ = ["burst", "change", "line_of", "merge", "tags_of"]
