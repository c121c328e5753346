"""What happens in and to channels."""

from culture.federation.codec.fields import Decoders, Encoded, Encoders, optional
from culture.protocol.message import Message
from culture.server.core.ids import EventId
from culture.server.events import ChannelRenamed, Event, Invited, Joined, Kicked, MetadataSet, Parted, TopicSet


def _encode_joined(event: Joined) -> Encoded:
    tags = optional(account=event.account)
    return "JOIN", (event.channel, f"+{event.status}", event.realname), event.source, tags


def _decode_joined(line: Message, stamp: EventId) -> Event:
    channel, status, realname = line.params
    return Joined(stamp, line.source, channel, status.removeprefix("+"), line.tags.get("account"), realname)


def _encode_parted(event: Parted) -> Encoded:
    return "PART", (event.channel,) if event.reason is None else (event.channel, event.reason), event.source, {}


def _decode_parted(line: Message, stamp: EventId) -> Event:
    channel, *reason = line.params
    return Parted(stamp, line.source, channel, reason[0] if reason else None)


def _encode_kicked(event: Kicked) -> Encoded:
    return "KICK", (event.channel, event.nick, event.reason), event.source, {}


def _decode_kicked(line: Message, stamp: EventId) -> Event:
    channel, nick, reason = line.params
    return Kicked(stamp, line.source, channel, nick, reason)


def _encode_topic(event: TopicSet) -> Encoded:
    return "TOPIC", (event.channel, event.text), event.source, {}


def _decode_topic(line: Message, stamp: EventId) -> Event:
    channel, text = line.params
    return TopicSet(stamp, line.source, channel, text)


def _encode_invited(event: Invited) -> Encoded:
    return "INVITE", (event.nick, event.channel), event.source, {}


def _decode_invited(line: Message, stamp: EventId) -> Event:
    nick, channel = line.params
    return Invited(stamp, line.source, nick, channel)


def _encode_channel_renamed(event: ChannelRenamed) -> Encoded:
    return "RENAME", (event.channel, event.new, event.reason), event.source, {}


def _decode_channel_renamed(line: Message, stamp: EventId) -> Event:
    channel, new, reason = line.params
    return ChannelRenamed(stamp, line.source, channel, new, reason)


def _encode_metadata(event: MetadataSet) -> Encoded:
    words = (event.target, event.key, event.visibility)
    return "METADATA", words if event.value is None else (*words, event.value), event.source, {}


def _decode_metadata(line: Message, stamp: EventId) -> Event:
    target, key, visibility, *value = line.params
    return MetadataSet(stamp, line.source, target, key, value[0] if value else None, visibility)


ENCODERS: Encoders = {
    Joined: _encode_joined,
    Parted: _encode_parted,
    Kicked: _encode_kicked,
    TopicSet: _encode_topic,
    Invited: _encode_invited,
    ChannelRenamed: _encode_channel_renamed,
    MetadataSet: _encode_metadata,
}
DECODERS: Decoders = {
    "JOIN": _decode_joined,
    "PART": _decode_parted,
    "KICK": _decode_kicked,
    "TOPIC": _decode_topic,
    "INVITE": _decode_invited,
    "RENAME": _decode_channel_renamed,
    "METADATA": _decode_metadata,
}
