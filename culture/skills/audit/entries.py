"""Events as lines of the audit; what was said in private is never in them."""

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
_REMEMBERED = 10_000  # agents whose last state is known, those who said it longest ago given up first
_KINDS = {FactKind.SPEND: "spent", FactKind.ALERT: "alerted", FactKind.TASK: "task"}
Entry = dict[str, Any]


def said(event: Said) -> Entry:
    """A message: who to whom, and its text where it was for a whole channel."""
    entry = _begun(event, "said")
    entry |= {"account": event.account, "class": event.kind, "to": f"{event.status}{event.target}", "verb": event.verb}
    if event.mentions:
        entry["called"] = list(event.mentions)
    if is_channel(event.target) and not event.status:
        entry["text"] = clip(event.text, _LONGEST_TEXT)
    return entry


def redacted(event: Redacted) -> Entry:
    """A message that was taken back."""
    return _begun(event, "took back") | {"to": event.target, "message": event.msgid}


class Facts:
    """What agents say of themselves, as far as it is news."""

    def __init__(self) -> None:
        self._states: dict[str, str] = {}

    def entry(self, event: Noted) -> Entry | None:
        """The line of a fact; None for what the audit has no use for."""
        value = json.loads(event.value)
        if event.kind == FactKind.STATE:
            return self._state(event, value)
        if event.kind == FactKind.QUESTION:
            what = "asked" if value.get("open") else "was answered"
            found = verdict_fields(event.verified, event.why) if is_approval(value) else {}
            return _begun(event, what) | {"question": event.key, **_without(value, "open", *found), **found}
        if event.kind in _KINDS:
            return _begun(event, _KINDS[FactKind(event.kind)]) | {"key": event.key, **_without(value)}
        return None

    def _state(self, event: Noted, value: Mapping[str, Any]) -> Entry | None:
        nick, state = nick_of(event.source), str(value.get("state", "?"))
        before = self._states.pop(nick, None)
        self._states[nick] = state
        if len(self._states) > _REMEMBERED:
            del self._states[next(iter(self._states))]
        return None if before == state else _begun(event, "state") | {"state": state, "before": before}


def line(entry: Entry) -> bytes:
    """One line of the file."""
    return json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode(errors="replace") + b"\n"


def _begun(event: Said | Redacted | Noted, what: str) -> Entry:
    return {"at": iso_time(event.id.at), "what": what, "by": nick_of(event.source), "id": event.id.msgid}


def _without(value: Mapping[str, Any], *keys: str) -> Entry:
    """What a fact says; no fact changes when, who and what."""
    taken = {"at", "what", "by", "id", *keys}
    fields = {(f"{key}_" if key in taken - {*keys} else key): said for key, said in value.items() if key not in keys}
    return fields
