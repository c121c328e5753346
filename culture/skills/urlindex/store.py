"""The links on disk: written in groups by one thread at a time."""

from collections.abc import Sequence
from pathlib import Path

from culture.protocol.names import fold
from culture.runtime import REAL, Runtime
from culture.server.database import open_database, transaction
from culture.skills.urlindex.facts import OPEN, Fact, MessageWithLinks, Moved, RedactedMessage
from culture.skills.urlindex.links import FoundLink, links
from culture.skills.urlindex.schema import STEPS

MENTIONS = 20
"""So many of a link's latest mentions are kept, and the first one; the count goes on."""


class UrlIndexStore:
    """The file that is written.

    Reading has connections of its own (``culture.skills.urlindex.search``).
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
