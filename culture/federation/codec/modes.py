"""Modes: their changes are ``[[add, letter, parameter], …]``, as parameters may have any character."""

import json

from culture.federation.codec.fields import Decoders, Encoded, Encoders
from culture.protocol.message import Message
from culture.protocol.modes import ModeChange
from culture.server.core.ids import EventId
from culture.server.events import Event, ModeSet, UserModeSet


def _encode_user_modes(event: UserModeSet) -> Encoded:
    return "UMODE", (_changes(event.changes),), event.source, {}


def _decode_user_modes(line: Message, stamp: EventId) -> Event:
    return UserModeSet(stamp, line.source, _read_changes(line.params[0]))


def _encode_modes(event: ModeSet) -> Encoded:
    return "MODE", (event.channel, _changes(event.changes)), event.source, {}


def _decode_modes(line: Message, stamp: EventId) -> Event:
    channel, changes = line.params
    return ModeSet(stamp, line.source, channel, _read_changes(changes))


def _changes(changes: tuple[ModeChange, ...]) -> str:
    return json.dumps(changes, ensure_ascii=False, separators=(",", ":"))


def _read_changes(text: str) -> tuple[ModeChange, ...]:
    read = []
    for add, mode, param in json.loads(text):
        if not (isinstance(add, bool) and isinstance(mode, str) and len(mode) == 1):
            raise ValueError("not a change of modes")
        if not (param is None or isinstance(param, str)):
            raise ValueError("not a parameter")
        read.append(ModeChange(add, mode, param))
    return tuple(read)


ENCODERS: Encoders = {
    UserModeSet: _encode_user_modes,
    ModeSet: _encode_modes,
}
DECODERS: Decoders = {
    "UMODE": _decode_user_modes,
    "MODE": _decode_modes,
}
