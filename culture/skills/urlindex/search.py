"""Read the index, with a time limit per query."""

import json
import math
import sqlite3
from contextlib import closing
from pathlib import Path

from culture.protocol.names import fold
from culture.runtime import REAL, Runtime
from culture.server.database import open_reader
from culture.skills.urlindex.facts import OPEN, LinkPage, ReadableChannels, Shared

_STEPS = 1000  # SQLite instructions between two checks of the time limit

# A link that was shared in the open and behind a closed door is there twice; it is shown once, with both counted.
# The order of the join is fixed (CROSS), so that the newest links are found first and without sorting.
_SELECT = """
    SELECT l.name, m.nick, m.at,
        (SELECT SUM(o.count) FROM links o
            WHERE o.channel = l.channel AND o.key = l.key AND (o.room = {open} OR o.room >= {since})),
        l.url, m.context, m.msgid
    FROM links l {more} CROSS JOIN mentions m ON m.id = l.last
    WHERE (l.room = {open} OR l.room >= {since})
        AND NOT EXISTS (SELECT 1 FROM links o WHERE o.channel = l.channel AND o.key = l.key
            AND (o.room = {open} OR o.room >= {since}) AND +o.last > l.last)
        AND {where}
    ORDER BY l.last DESC LIMIT :most
"""
_RECENT = _SELECT.format(open=OPEN, since=":since", more="", where="l.channel = :channel")
_SEARCH = """
    WITH mine (channel, since) AS MATERIALIZED (SELECT value ->> 0, value ->> 1 FROM json_each(:mine)),
        hidden (channel) AS MATERIALIZED (SELECT value FROM json_each(:hidden))
""" + _SELECT.format(
    open=OPEN,
    since="mine.since",
    more="LEFT JOIN mine ON mine.channel = l.channel",
    where="""l.channel NOT IN (SELECT channel FROM hidden) AND (instr(l.folded, :term) OR EXISTS
        (SELECT 1 FROM mentions t WHERE t.link = l.id AND instr(t.folded, :term)))""",
)


class IndexUnreadable(Exception):
    """The index's file cannot be read at the moment."""


class LinkReader:
    """Queries the index's SQLite file; safe for several threads."""

    def __init__(self, path: Path, patience: float, runtime: Runtime = REAL) -> None:
        self._path = path
        self._patience = patience
        self._runtime = runtime
        self._monotonic = runtime.monotonic

    def recent(self, channel: str, since: float | None, most: int) -> LinkPage:
        """Return the latest links of a channel that were shared while it was open.

        ``since``: the channel's creation time, which adds the links shared since then while it was closed; None adds
        none. ``most``: how many links.
        """
        bound = math.inf if since is None else since
        return self._find(_RECENT, {"channel": fold(channel), "since": bound, "most": most})

    def search(self, view: ReadableChannels, term: str, most: int) -> LinkPage:
        """Return the latest links in channels of ``view`` that contain the term.

        Links whose message contains it are returned, too. ``most``: how many links.
        """
        mine = json.dumps(list(view.since.items()), ensure_ascii=False)
        hidden = json.dumps(list(view.hidden), ensure_ascii=False)
        return self._find(_SEARCH, {"mine": mine, "hidden": hidden, "term": term.casefold(), "most": most})

    def _find(self, query: str, parameters: dict[str, object]) -> LinkPage:
        until = self._monotonic() + self._patience
        links: list[Shared] = []
        try:
            with closing(open_reader(self._path, runtime=self._runtime)) as file:
                file.set_progress_handler(lambda: self._monotonic() > until, _STEPS)
                for row in file.execute(query, parameters):
                    links.append(Shared(*row))
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
                raise IndexUnreadable(str(error)) from error
            return LinkPage(links, False)
        return LinkPage(links, True)
