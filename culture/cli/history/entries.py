"""Entries of the history as lines: for programs (JSON), and for people."""

import json
from collections.abc import Iterator

from culture.cli.amounts import exact_moment
from culture.protocol import text
from culture.protocol.text import Profile, clean
from culture.skills.history.entry import Entry, Sort, event_of
from culture.skills.logger.scribe import Logged, Scribe, moment


def as_json(entry: Entry) -> str:
    """Everything that is kept of it, in one line."""
    data = json.loads(entry.data) if entry.data else {}
    said = {
        "msgid": entry.msgid,
        "time": exact_moment(entry.at),
        "place": entry.place,
        "target": entry.target,
        "verb": entry.verb,
        "source": entry.source,
        "account": entry.account,
        "class": entry.kind,
        "text": entry.text,
        "tags": data.pop("tags", {}),
        "mentions": data.pop("mentions", []),
        "lines": data.pop("lines", []),
        "status": entry.status,
        "closed": entry.closed,
        "data": data,
    }
    return text.as_json(said, indent=None)


class Reader:
    """Writes entries down as people read them, in the manner of weechat's logs; where they were said, if asked to."""

    def __init__(self, with_place: bool) -> None:
        self._scribe = Scribe()
        self._with_place = with_place

    def lines(self, entry: Entry) -> Iterator[str]:
        """The lines of an entry; none for what was taken back, or has no text to be read."""
        if entry.sort is Sort.REDACTED or entry.verb == "TAGMSG":
            return
        event = event_of(entry)
        assert isinstance(event, Logged)
        for row in self._scribe.rows(event, (entry.target,)):
            where = f"{_place(entry)}\t" if self._with_place else ""
            yield f"{moment(row.at)}\t{where}{clean(row.who, Profile.LOG)}\t{clean(row.text, Profile.LOG)}"


def _place(entry: Entry) -> str:
    """The channel, or the two who talk."""
    one, _, other = entry.place.partition(" ")
    return f"{one[2:]},{other[2:]}" if other else clean(entry.target, Profile.LOG)
