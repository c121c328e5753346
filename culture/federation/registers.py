"""What channels are set to, as lines of a burst; of two settings of one thing the one with the greater mark holds."""

import json
from collections.abc import Iterator
from typing import Any

from culture.config.links import Link as Settings
from culture.federation.codec import Garbled
from culture.federation.trust import crosses
from culture.protocol.message import Message
from culture.protocol.modes import Change
from culture.protocol.names import fold
from culture.protocol.vocabulary import ChannelMode
from culture.server.changes.channels import part_of
from culture.server.events import Event, ModeSet, TopicSet
from culture.server.network import Network
from culture.server.skill import Host
from culture.server.state import MEMBER_MODES, Channel, Mark

# +P, its founder and what is kept on disk are each server's own.
_OWN = frozenset({ChannelMode.REGISTERED.value, ChannelMode.LOCAL.value})


def burst(network: Network, own: str, settings: Settings) -> Iterator[Message]:
    """One line for each channel that may cross."""
    for channel in network.channels.values():
        if crosses(channel, settings):
            yield line_of(channel, own)


def line_of(channel: Channel, own: str) -> Message:
    """``CHANNEL #name created clock :settings``."""
    topic = channel.topic
    said = {
        "topic": None if topic is None else [topic.text, topic.by],
        "flags": "".join(sorted(channel.flags - _OWN)),
        "key": channel.key,
        "limit": channel.limit,
        "shared": None if channel.shared is None else ",".join(channel.shared),
        "lists": {mode: list(entries) for mode, entries in channel.lists.items() if entries},
        "ranks": {user.nick: rank for user, rank in channel.members.items() if rank},
        "marks": {part: list(mark) for part, mark in channel.marks.items() if part not in _OWN},
    }
    words = (channel.name, str(round(channel.created * 1e6)), str(channel.clock), json.dumps(said, ensure_ascii=False))
    return Message("CHANNEL", words, own)


def merge(host: Host, line: Message, was_there: bool) -> Iterator[Event]:
    """The events that make the channel what both sides together say; each is published before the next is asked for."""
    name, created, clock, text = line.params
    channel = host.network.channel(name)
    if channel is None:
        return
    try:
        said: dict[str, Any] = json.loads(text)
        marks = {part: Mark(int(v), float(at), str(o), int(s)) for part, (v, at, o, s) in said["marks"].items()}
    except (ValueError, KeyError, TypeError) as error:
        raise Garbled(f"CHANNEL {name}: {error}") from error
    channel.created = min(channel.created, int(created) / 1e6)
    channel.clock = max(channel.clock, int(clock))
    news = {part: mark for part, mark in marks.items() if mark > channel.marks.get(part, _NEVER)}
    if "topic" in news:
        text = said["topic"][0] if said["topic"] else ""
        if text != (channel.topic.text if channel.topic else ""):
            yield TopicSet(host.stamp(), str((said["topic"] or ["", line.source])[1]), channel.name, text)
    changes = tuple(_changes(channel, said, news, was_there))
    if changes:
        yield ModeSet(host.stamp(), line.source, channel.name, changes)
    channel.marks.update(news)


_NEVER = Mark(-1, 0.0, "", 0)


def _changes(channel: Channel, said: dict[str, Any], news: dict[str, Mark], was_there: bool) -> Iterator[Change]:
    flags = set(str(said["flags"]))
    for flag in sorted((flags | channel.flags) - _OWN):
        is_news = flag in news or (not was_there and flag not in channel.marks)
        if is_news and (flag in flags) != (flag in channel.flags):
            yield Change(flag in flags, flag)
    if "k" in news and said["key"] != channel.key:
        yield Change(said["key"] is not None, "k", said["key"] or "*")
    if "l" in news and said["limit"] != channel.limit:
        yield Change(said["limit"] is not None, "l", str(said["limit"]) if said["limit"] else None)
    shared = None if channel.shared is None else ",".join(channel.shared)
    if ChannelMode.SHARED in news and said["shared"] != shared:
        yield Change(said["shared"] is not None, ChannelMode.SHARED.value, said["shared"])
    for part in news:
        mode, colon, param = part.partition(":")
        if colon and mode in "beI":
            is_listed = param in said["lists"].get(mode, ())
            if is_listed != (param in channel.lists.get(mode, {})):
                yield Change(is_listed, mode, param)
        elif colon and mode in MEMBER_MODES:
            ranks = {fold(nick): rank for nick, rank in said["ranks"].items()}
            for user, held in channel.members.items():
                if fold(user.nick) == param and (mode in ranks.get(param, "")) != (mode in held):
                    yield Change(mode in ranks.get(param, ""), mode, user.nick)


def effective(network: Network, event: ModeSet, version: int) -> ModeSet | None:
    """What of a change of modes from elsewhere is newer than what is set here; None where nothing is."""
    channel = network.channel(event.channel)
    if channel is None:
        return None
    mark = Mark(version, event.id.at, event.id.origin, event.id.seq)
    fresh = tuple(change for change in event.changes if mark > channel.marks.get(part_of(change), _NEVER))
    return event._replace(changes=fresh) if fresh else None


def is_newest_topic(network: Network, event: TopicSet, version: int) -> bool:
    """Is it newer than the topic here?"""
    channel = network.channel(event.channel)
    mark = Mark(version, event.id.at, event.id.origin, event.id.seq)
    return channel is not None and mark > channel.marks.get("topic", _NEVER)
