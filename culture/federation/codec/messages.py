"""Messages, and what is said of them; facts of agents."""

import json
from collections.abc import Mapping

from culture.federation.codec.fields import Decoders, Encoded, Encoders, optional
from culture.protocol.message import NO_TAGS, Message
from culture.server.core.ids import EventId
from culture.server.events import Event, Line, Noted, Receipted, Redacted, Said

_OWN = frozenset(
    {"id", "at", "account", "kind", "mentions", "lines", "v", "n", "seal", "away", "modes", "meta", "none", "got"}
    | {"shared", "unvouched", "open"}
)
OPEN_TAG = "open"
"""On a message to a channel: 1 where everybody could have come in when it was said, else 0.

Outside of the seal: a server adds it to messages of its own that it sealed as an older version.
"""
CLOSED: Mapping[str | None, bool | None] = {"1": False, "0": True, None: None}
"""What the tag says of ``Said.closed``."""


def with_door(data: str, closed: bool) -> str:
    """A message's line that tells whether the channel was closed when it was said."""
    return f"@{OPEN_TAG}={int(not closed)};{data[1:]}"


def _encode_redacted(event: Redacted) -> Encoded:
    words = (event.target, event.msgid)
    return "REDACT", words if event.reason is None else (*words, event.reason), event.source, {}


def _decode_redacted(line: Message, stamp: EventId) -> Event:
    target, msgid, *reason = line.params
    return Redacted(stamp, line.source, target, msgid, reason[0] if reason else None)


def _encode_receipted(event: Receipted) -> Encoded:
    return "RECEIPT", (event.target, event.msgid, event.state), event.source, {}


def _decode_receipted(line: Message, stamp: EventId) -> Event:
    nick, msgid, state = line.params
    return Receipted(stamp, line.source, nick, msgid, state)


def _encode_noted(event: Noted) -> Encoded:
    tags = optional(verified=event.verified, why=event.why)
    return "LEDGER", (event.kind, event.key, event.value), event.source, tags


def _decode_noted(line: Message, stamp: EventId) -> Event:
    kind, key, value = line.params
    return Noted(stamp, line.source, kind, key, value, line.tags.get("verified", ""), line.tags.get("why", ""))


def _encode_said(event: Said) -> Encoded:
    tags = optional(
        account=event.account,
        kind=event.kind,
        mentions=",".join(event.mentions),
        lines=json.dumps(event.lines, ensure_ascii=False, separators=(",", ":")) if event.lines else None,
        open=None if event.closed is None else str(int(not event.closed)),
    )
    theirs = {key: value for key, value in event.tags.items() if key not in _OWN}
    text = "" if event.lines else event.text
    words = (f"{event.status}{event.target}",) if event.verb == "TAGMSG" else (f"{event.status}{event.target}", text)
    return event.verb, words, event.source, {**theirs, **tags}


def _decode_said(line: Message, stamp: EventId) -> Event:
    target, *text = line.params
    status = target[0] if target[0] in "@+" else ""
    lines = _read_lines(line.tags.get("lines"))
    said = joined(lines) if lines else "".join(text)
    theirs = {key: value for key, value in line.tags.items() if key not in _OWN}
    mentions = line.tags.get("mentions", "")
    return Said(
        stamp,
        line.source,
        line.verb,
        target.removeprefix(status),
        said,
        line.tags.get("account"),
        line.tags.get("kind", "unknown"),
        theirs or NO_TAGS,
        tuple(mentions.split(",")) if mentions else (),
        status,
        lines,
        CLOSED.get(line.tags.get(OPEN_TAG)),
    )


def _read_lines(text: str | None) -> tuple[Line, ...]:
    if text is None:
        return ()
    lines = tuple(Line(line, concat) for line, concat in json.loads(text))
    for line, concat in lines:
        if not (isinstance(line, str) and isinstance(concat, bool)) or set(line) & set("\r\n\0"):
            raise ValueError("not lines")
    return lines


def joined(lines: tuple[Line, ...]) -> str:
    """The text of several lines."""
    text = ""
    for position, (line, concat) in enumerate(lines):
        text += line if concat or not position else f"\n{line}"
    return text


ENCODERS: Encoders = {
    Redacted: _encode_redacted,
    Receipted: _encode_receipted,
    Noted: _encode_noted,
    Said: _encode_said,
}
DECODERS: Decoders = {
    "REDACT": _decode_redacted,
    "RECEIPT": _decode_receipted,
    "LEDGER": _decode_noted,
    "PRIVMSG": _decode_said,
    "NOTICE": _decode_said,
    "TAGMSG": _decode_said,
}
