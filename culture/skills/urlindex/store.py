"""The index on disk: written in groups by one thread at a time, read with a time limit per query."""

import json
import math
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from culture.protocol.names import fold
from culture.runtime import REAL, Runtime
from culture.server.database import Step, open_database, open_reader, transaction
from culture.skills.keeping import AGAIN, Keeping
from culture.skills.urlindex.facts import (
    OPEN,
    Fact,
    LinkPage,
    MessageWithLinks,
    Moved,
    ReadableChannels,
    RedactedMessage,
    Shared,
)
from culture.skills.urlindex.links import FoundLink, links

STEPS: tuple[Step, ...] = (
    # A link is kept once for a channel and a room of it, with how often it was shared. ``last`` is its newest mention.
    # The mentions are the first and the latest ones, so that a message that is taken back can be found.
    """
    CREATE TABLE links (
        id INTEGER PRIMARY KEY,
        channel TEXT NOT NULL,
        room REAL NOT NULL,
        key TEXT NOT NULL,
        name TEXT NOT NULL,
        url TEXT NOT NULL,
        folded TEXT NOT NULL,
        count INTEGER NOT NULL,
        last INTEGER NOT NULL,
        UNIQUE (channel, key, room)
    );
    CREATE TABLE mentions (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        link INTEGER NOT NULL REFERENCES links (id) ON DELETE CASCADE,
        msgid TEXT NOT NULL,
        nick TEXT NOT NULL,
        at REAL NOT NULL,
        context TEXT NOT NULL,
        folded TEXT NOT NULL,
        UNIQUE (link, msgid)
    );
    CREATE INDEX links_by_age ON links (last);
    CREATE INDEX links_of_channel ON links (channel, last);
    CREATE INDEX mentions_by_message ON mentions (msgid)
    """,
)
MENTIONS = 20
"""So many of a link's latest mentions are kept, and the first one; the count goes on."""
MOST_WAITING = 5_000
"""So many messages may wait; twice as many facts in all, since what is taken back should not be forgotten."""
_CHECK_EVERY = 1000  # SQLite instructions between two checks of the time limit

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


class UrlIndexStore:
    """The file that is written.

    Reading has connections of its own (``LinkReader``).
    """

    def __init__(self, path: Path, keep: int, runtime: Runtime = REAL) -> None:
        self._keep = keep
        self._file = open_database(path, STEPS, runtime=runtime)
        self._file.execute("PRAGMA secure_delete=ON")  # what was taken back is not left in a free page

    def close(self) -> None:
        """Nothing more will be written."""
        self._file.close()

    def write(self, facts: Sequence[Fact]) -> None:
        """Write them in this order; on disk when it returns, none of them when it raises."""
        with transaction(self._file):
            for fact in facts:
                self._take(fact)
            self._drop_oldest()

    def _take(self, fact: Fact) -> None:
        if isinstance(fact, MessageWithLinks):
            for link in links(fact.text):
                self._share(fact, link)
        elif isinstance(fact, RedactedMessage):
            self._take_back(fact)
        else:
            self._move(fact)

    def _share(self, heard: MessageWithLinks, link: FoundLink) -> None:
        [number] = self._file.execute(
            "INSERT INTO links (channel, room, key, name, url, folded, count, last) VALUES (?, ?, ?, ?, ?, ?, 0, 0)"
            " ON CONFLICT DO UPDATE SET name = excluded.name RETURNING id",
            (fold(heard.channel), heard.room, link.key, heard.channel, link.url, link.url.casefold()),
        ).fetchone()
        added = self._file.execute(
            "INSERT OR IGNORE INTO mentions (link, msgid, nick, at, context, folded) VALUES (?, ?, ?, ?, ?, ?)",
            (number, heard.msgid, heard.nick, heard.at, link.context, link.context.casefold()),
        )
        if added.rowcount == 1:
            self._file.execute("UPDATE links SET count = count + 1, last = ? WHERE id = ?", (added.lastrowid, number))
            self._forget_mentions(number)

    def _forget_mentions(self, link: int) -> None:
        """Of what is neither the first nor one of the latest only the count is left."""
        self._file.execute(
            "DELETE FROM mentions WHERE link = :link AND id <"
            " (SELECT id FROM mentions WHERE link = :link ORDER BY id DESC LIMIT 1 OFFSET :latest)"
            " AND id > (SELECT MIN(id) FROM mentions WHERE link = :link)",
            {"link": link, "latest": MENTIONS - 1},
        )

    def _take_back(self, fact: RedactedMessage) -> None:
        taken = self._file.execute("SELECT link FROM mentions WHERE msgid = ?", (fact.msgid,)).fetchall()
        self._file.execute("DELETE FROM mentions WHERE msgid = ?", (fact.msgid,))
        for (link,) in taken:
            self._file.execute("UPDATE links SET count = count - 1 WHERE id = ?", (link,))
            self._find_last(link)

    def _find_last(self, link: int) -> None:
        """Its newest mention has changed; a link that nobody is known to have shared is none."""
        [last] = self._file.execute("SELECT MAX(id) FROM mentions WHERE link = ?", (link,)).fetchone()
        if last is None:
            self._file.execute("DELETE FROM links WHERE id = ?", (link,))
        else:
            self._file.execute("UPDATE links SET last = ? WHERE id = ?", (last, link))

    def _move(self, fact: Moved) -> None:
        """What was there already under the new name is counted together with what comes.

        But what was behind the closed doors of another channel was for nobody who is in this one.
        """
        old, new = fold(fact.channel), fold(fact.new)
        if old != new:
            self._file.execute("DELETE FROM links WHERE channel = ? AND room <> ?", (new, OPEN))
        both = self._file.execute(
            "SELECT a.id, b.id, a.count FROM links a JOIN links b ON b.key = a.key AND b.room = a.room"
            " WHERE a.channel = ? AND b.channel = ? AND a.id != b.id",
            (old, new),
        ).fetchall()
        for moved, there, count in both:
            self._file.execute("UPDATE mentions SET link = ? WHERE link = ?", (there, moved))
            self._file.execute("DELETE FROM links WHERE id = ?", (moved,))
            self._file.execute("UPDATE links SET count = count + ? WHERE id = ?", (count, there))
            self._find_last(there)
            self._forget_mentions(there)
        self._file.execute("UPDATE links SET channel = ?, name = ? WHERE channel IN (?, ?)", (new, fact.new, old, new))

    def _drop_oldest(self) -> None:
        [count] = self._file.execute("SELECT COUNT(*) FROM links").fetchone()
        if count > self._keep:
            self._file.execute(
                "DELETE FROM links WHERE id IN (SELECT id FROM links ORDER BY last LIMIT ?)", (count - self._keep,)
            )


class UrlIndexWriter(Keeping[Fact, UrlIndexStore]):
    """Messages with links, and what becomes of them."""

    def __init__(
        self,
        open_store: Callable[[], UrlIndexStore],
        tell: Callable[[str], None],
        failed: Callable[[BaseException], None],
        again: float = AGAIN,
        runtime: Runtime = REAL,
    ) -> None:
        super().__init__("messages with links", MOST_WAITING, open_store, tell, failed, again, runtime=runtime)

    def most_before(self, fact: Fact) -> int:
        """A message has less room than what is said of others."""
        return MOST_WAITING if isinstance(fact, MessageWithLinks) else 2 * MOST_WAITING


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
                file.set_progress_handler(lambda: self._monotonic() > until, _CHECK_EVERY)
                for row in file.execute(query, parameters):
                    links.append(Shared(*row))
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
                raise IndexUnreadable(str(error)) from error
            return LinkPage(links, False)
        return LinkPage(links, True)
