"""The facts on disk: the schema of the SQLite file, as migrations, and its reads and writes."""

from collections.abc import Sequence
from pathlib import Path

from culture.protocol.names import fold
from culture.protocol.vocabulary import FactKind
from culture.runtime import REAL, Runtime
from culture.server.database import Step, open_database, transaction
from culture.skills.ledger.facts import Fact, FactQuery

STEPS: tuple[Step, ...] = (
    """
    CREATE TABLE facts (
        folded TEXT NOT NULL,
        kind TEXT NOT NULL,
        key TEXT NOT NULL,
        nick TEXT NOT NULL,
        value TEXT NOT NULL,
        at INTEGER NOT NULL,
        origin TEXT NOT NULL,
        seq INTEGER NOT NULL,
        PRIMARY KEY (folded, kind, key)
    ) WITHOUT ROWID;
    CREATE INDEX facts_by_time ON facts (at);
    CREATE INDEX facts_by_kind ON facts (kind, at);
    CREATE INDEX facts_by_key ON facts (key)
    """,
    """
    ALTER TABLE facts ADD COLUMN verified TEXT NOT NULL DEFAULT '';
    ALTER TABLE facts ADD COLUMN why TEXT NOT NULL DEFAULT ''
    """,
)
_COLUMNS = "nick, kind, key, value, at, origin, seq, verified, why"
_PUT = """
    INSERT INTO facts (folded, kind, key, nick, value, at, origin, seq, verified, why)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET nick = excluded.nick, value = excluded.value, at = excluded.at, origin = excluded.origin,
        seq = excluded.seq, verified = excluded.verified, why = excluded.why
    WHERE (excluded.at, excluded.origin, excluded.seq) > (facts.at, facts.origin, facts.seq)
"""


class LedgerStore:
    """One file, used by one thread at a time."""

    def __init__(self, path: Path, runtime: Runtime = REAL) -> None:
        self._file = open_database(path, STEPS, runtime=runtime)

    def close(self) -> None:
        """Nothing more is asked of it."""
        self._file.close()

    def write(self, facts: Sequence[Fact]) -> None:
        """Take them, as far as nothing later is known.

        On disk when it returns, none of them when it raises.
        """
        rows = [
            (*fact.place, fact.nick, fact.value, fact.at, fact.origin, fact.seq, fact.verified, fact.why)
            for fact in facts
        ]
        with transaction(self._file):
            self._file.executemany(_PUT, rows)

    def find(self, asked: FactQuery) -> list[Fact]:
        """The facts that are asked for, the newest first.

        One more than wanted tells that there are more.
        """
        where = ["at >= ?"]
        words: list[object] = [asked.since]
        if asked.before is not None:
            where.append("at < ?")
            words.append(asked.before)
        if asked.kind is not None:
            where.append("kind = ?")
            words.append(asked.kind)
        if asked.nick is not None:
            where.append("folded = ?")
            words.append(fold(asked.nick))
        if asked.key is not None:
            where.append("(key = ? OR (key > ? AND key < ?))")
            words += [asked.key, f"{asked.key}/", f"{asked.key}0"]  # 0 is what comes after the slash
        query = (
            f"SELECT {_COLUMNS} FROM facts WHERE {' AND '.join(where)} ORDER BY at DESC, origin DESC, seq DESC LIMIT ?"
        )
        return [Fact(*row) for row in self._file.execute(query, (*words, asked.most + 1))]

    def origins(self) -> set[str]:
        """The servers of which there is a fact."""
        return {origin for (origin,) in self._file.execute("SELECT DISTINCT origin FROM facts")}

    def said_by(self, origin: str, most: int) -> list[Fact]:
        """What was said on a server, the oldest first, up to so many of the newest.

        Not how its links were.
        """
        query = (
            f"SELECT {_COLUMNS} FROM facts WHERE origin = ? AND kind NOT IN (?, ?) ORDER BY at DESC, seq DESC LIMIT ?"
        )
        words = (origin, FactKind.LINK.value, FactKind.RECEIPT.value, most)
        return [Fact(*row) for row in self._file.execute(query, words)][::-1]

    def prune(self, before: int, most: int, most_each: int) -> None:
        """Forget what is older than this, and the oldest where there are too many, of one nick or in all."""
        self._file.execute("DELETE FROM facts WHERE at < ?", (before,))
        many = self._file.execute(
            "SELECT folded FROM facts GROUP BY folded HAVING COUNT(*) > ?", (most_each,)
        ).fetchall()
        for (nick,) in many:
            self._drop_oldest("folded = ?", (nick,), most_each)
        self._drop_oldest("TRUE", (), most)

    def _drop_oldest(self, where: str, words: tuple[object, ...], most: int) -> None:
        query = f"SELECT at FROM facts WHERE {where} ORDER BY at DESC LIMIT 1 OFFSET ?"
        row = self._file.execute(query, (*words, most)).fetchone()
        if row is not None:
            self._file.execute(f"DELETE FROM facts WHERE {where} AND at <= ?", (*words, row[0]))
