"""Convert events to entries of the audit log, without the text of private messages."""

import json
from collections.abc import Mapping
from typing import Any

from culture.protocol.names import is_channel
from culture.protocol.split import clip
from culture.protocol.vocabulary import FactKind
from culture.server.core.render import iso_time
from culture.server.events import Noted, Redacted, Said, nick_of
from culture.skills.ledger.facts import is_approval, verdict_fields

_LONGEST_TEXT = 400
_MAX_STATES = 10_000  # agents whose last state is kept; the oldest are dropped first
_KINDS = {FactKind.SPEND: "spent", FactKind.ALERT: "alerted", FactKind.TASK: "task"}
Entry = dict[str, Any]


def said(event: Said) -> Entry:
    """Return the audit entry of a message.

    Its text is included only if the message went to a whole channel.
    """
    entry = _new_entry(event, "said")
    entry |= {"account": event.account, "class": event.kind, "to": f"{event.status}{event.target}", "verb": event.verb}
    if event.mentions:
        entry["called"] = list(event.mentions)
    if is_channel(event.target) and not event.status:
        entry["text"] = clip(event.text, _LONGEST_TEXT)
    return entry


def redacted(event: Redacted) -> Entry:
    """Return the audit entry of a redacted message."""
    return _new_entry(event, "took back") | {"to": event.target, "message": event.msgid}


class Facts:
    """Converts ledger facts of agents to audit entries; an unchanged state gives none."""

    def __init__(self) -> None:
        self._states: dict[str, str] = {}

    def entry(self, event: Noted) -> Entry | None:
        """Return the audit entry of a fact, or None if the audit does not log that fact."""
        value = json.loads(event.value)
        if event.kind == FactKind.STATE:
            return self._state(event, value)
        if event.kind == FactKind.QUESTION:
            what = "asked" if value.get("open") else "was answered"
            verdict = verdict_fields(event.verified, event.why) if is_approval(value) else {}
            return _new_entry(event, what) | {"question": event.key, **_without(value, "open", *verdict), **verdict}
        if event.kind in _KINDS:
            return _new_entry(event, _KINDS[FactKind(event.kind)]) | {"key": event.key, **_without(value)}
        return None

    def _state(self, event: Noted, value: Mapping[str, Any]) -> Entry | None:
        nick, state = nick_of(event.source), str(value.get("state", "?"))
        before = self._states.pop(nick, None)
        self._states[nick] = state
        if len(self._states) > _MAX_STATES:
            del self._states[next(iter(self._states))]
        return None if before == state else _new_entry(event, "state") | {"state": state, "before": before}


def line(entry: Entry) -> bytes:
    """Return an audit entry as one line of JSON."""
    return json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode(errors="replace") + b"\n"


def _new_entry(event: Said | Redacted | Noted, what: str) -> Entry:
    return {"at": iso_time(event.id.at), "what": what, "by": nick_of(event.source), "id": event.id.msgid}


def _without(value: Mapping[str, Any], *keys: str) -> Entry:
    """Return the fields of a fact's value except ``keys``, for an audit entry.

    A name that is a standard field of audit entries gets an underscore at its end.
    """
    reserved = {"at", "what", "by", "id"} - {*keys}
    return {(f"{key}_" if key in reserved else key): field for key, field in value.items() if key not in keys}
