"""What a server says a channel is set to, read with care: it comes from elsewhere."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from culture.federation.codec.fields import Garbled, number
from culture.protocol.message import Message
from culture.protocol.names import fold, owner, short_name, valid_channel
from culture.protocol.vocabulary import ChannelMode
from culture.server.core.changes.channels import LATEST
from culture.server.core.ids import MICROSECONDS
from culture.server.core.state import MEMBER_MODES, Channel, ListEntry, Mark, Topic

OWN = frozenset({ChannelMode.REGISTERED.value, ChannelMode.LOCAL.value})
"""+P, its founder and what is kept on disk are each server's own, and so is what stays at home."""
RANK_PARTS = tuple(f"{mode}:" for mode in MEMBER_MODES)
_LISTS = "beI"
_LONGEST = 600
LONGEST_CHANNEL = 200
_MOST = 10_000
_END_OF_TIME = 1e12


@dataclass(slots=True)
class Told:
    """One CHANNEL line."""

    name: str
    created: int
    founded: int
    """Microseconds; 0 where it has no members, and so nobody has a rank."""
    clock: int
    source: str
    lives: bool = False
    """Does the server have a member of its own in it? Of other servers' it may not have heard that they left."""
    topic: Topic | None = None
    flags: frozenset[str] = frozenset()
    key: str | None = None
    limit: int | None = None
    shared: str | None = None
    lists: dict[str, dict[str, ListEntry]] = field(default_factory=dict)
    ranks: dict[str, str] = field(default_factory=dict)
    """By folded nick."""
    metadata: dict[str, str] = field(default_factory=dict)
    marks: dict[str, Mark] = field(default_factory=dict)


def founded(channel: Channel) -> int:
    """When the ranks of a channel began; 0 where nobody can have one."""
    is_begun = channel.members or channel.is_registered
    return round((channel.founded or channel.created) * MICROSECONDS) if is_begun else 0


def base_flags(channel: Channel) -> str:
    """The modes that other servers know too."""
    return "".join(sorted(channel.flags - OWN))


def line_of(channel: Channel, own: str, lives: bool = False) -> Message:
    """``CHANNEL #name created clock :settings``; ``lives``: we have just heard from who has a member in it."""
    topic = channel.topic
    said = {
        "founded": founded(channel),
        "lives": lives
        or channel.is_registered
        or any(owner(fold(user.nick)) == short_name(own) for user in channel.members),
        "topic": None if topic is None else [topic.text, topic.by, topic.at],
        "flags": base_flags(channel),
        "key": channel.key,
        "limit": channel.limit,
        "shared": None if channel.shared is None else ",".join(channel.shared),
        "lists": {mode: entries for mode, entries in channel.lists.items() if entries},
        "ranks": {user.nick: rank for user, rank in channel.members.items() if rank},
        "meta": channel.metadata or {},
        "marks": {part: mark for part, mark in channel.marks.items() if part not in OWN and part not in channel.absent},
    }
    text = json.dumps({key: value for key, value in said.items() if value}, ensure_ascii=False, separators=(",", ":"))
    return Message("CHANNEL", (channel.name, str(round(channel.created * MICROSECONDS)), str(channel.clock), text), own)


def read(line: Message) -> Told:
    """The same again; raises Garbled."""
    try:
        name, created, clock, text = line.params
        said = json.loads(text)
        if not valid_channel(name, LONGEST_CHANNEL):
            raise ValueError("no name of a channel")
        told = Told(name, number(created), _count(said.get("founded", 0)), _version(number(clock)), line.source)
        return _told(told, said)
    except (Garbled, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Garbled(f"CHANNEL: {error}") from error


def _told(told: Told, said: Mapping[str, Any]) -> Told:
    if said.get("topic") is not None:
        text, by, at = said["topic"]
        told.topic = Topic(_text(text), _word(by), _time(at))
    told.lives = bool(said.get("lives", False))
    told.flags = frozenset(_letters(said.get("flags", ""))) - OWN
    told.key = None if said.get("key") is None else _word(said["key"])
    told.limit = None if said.get("limit") is None else _count(said["limit"])
    told.shared = None if said.get("shared") is None else _word(said["shared"])
    for mode, entries in said.get("lists", {}).items():
        if mode in _LISTS:
            some = _few(entries.items())
            told.lists[mode] = {_word(mask): ListEntry(_word(by), _time(at)) for mask, (by, at) in some}
    told.ranks = {fold(_word(nick)): _letters(rank) for nick, rank in said.get("ranks", {}).items()}
    told.metadata = {_word(key): _text(value) for key, value in _few(said.get("meta", {}).items())}
    for part, (version, at, origin, seq) in _few(said.get("marks", {}).items()):
        if part not in OWN:
            told.marks[_text(part)] = Mark(_version(_count(version)), _time(at), _word(origin), _count(seq))
    # Whoever sets something later must outdo every mark.
    told.clock = max([told.clock, *(mark.version for mark in told.marks.values())])
    return told


def read_metadata(text: str) -> dict[str, str]:
    """What a server says that a user's metadata are; raises Garbled."""
    try:
        return {_word(key): _text(value) for key, value in _few(json.loads(text).items())}
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise Garbled(f"metadata: {error}") from error


def _few(items: Iterable[Any]) -> list[Any]:
    """As many as a channel can have, with room to spare."""
    some = list(items)
    if len(some) > _MOST:
        raise ValueError("more than a channel can have")
    return some


def _count(value: object) -> int:
    if not isinstance(value, int):
        raise ValueError("not a number")
    return number(str(value))


def _version(value: int) -> int:
    return min(value, LATEST)


def _time(value: object) -> float:
    if not isinstance(value, int | float) or not 0 <= value < _END_OF_TIME:
        raise ValueError("not a time")
    return float(value)


def _letters(value: object) -> str:
    text = _text(value)
    if text and not (text.isascii() and text.isalpha()):
        raise ValueError("not modes")
    return text


def _word(value: object) -> str:
    """Text that may stand anywhere in a line."""
    text = _text(value)
    if not text or " " in text or text[0] == ":":
        raise ValueError(f"{text!r} is no word")
    return text


def _text(value: object) -> str:
    """Text that may end a line."""
    if not isinstance(value, str) or set(value) & set("\r\n\0") or len(value.encode()) > _LONGEST:
        raise ValueError("not a text that fits in a line")
    return value
