"""The tables of the SQLite store, step by step from the first schema on."""

from culture.server.database import Step
from culture.skills.history.sqlite.reindex import reindex

STEPS: tuple[Step, ...] = (
    # Positions are times in microseconds with room for ties, so the rows lie in the order in which they are read.
    """
    CREATE TABLE places (
        id INTEGER PRIMARY KEY,
        key TEXT NOT NULL UNIQUE,
        name TEXT NOT NULL,
        one TEXT NOT NULL DEFAULT '',
        other TEXT NOT NULL DEFAULT '',
        one_nick TEXT NOT NULL DEFAULT '',
        other_nick TEXT NOT NULL DEFAULT ''
    );
    CREATE INDEX places_of_one ON places (one) WHERE one <> '';
    CREATE INDEX places_of_other ON places (other) WHERE other <> '';
    CREATE TABLE lines (
        id INTEGER PRIMARY KEY,
        origin TEXT NOT NULL,
        epoch TEXT NOT NULL,
        UNIQUE (origin, epoch)
    );
    CREATE TABLE entries (
        position INTEGER PRIMARY KEY,
        place INTEGER NOT NULL,
        sort INTEGER NOT NULL,
        line INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        verb TEXT NOT NULL,
        source TEXT NOT NULL,
        account TEXT,
        kind TEXT NOT NULL,
        text TEXT NOT NULL,
        target TEXT NOT NULL,
        status TEXT NOT NULL,
        closed INTEGER NOT NULL,
        data TEXT NOT NULL
    );
    CREATE INDEX entries_in_place ON entries (place, sort, position, closed, status);
    CREATE UNIQUE INDEX entries_by_id ON entries (line, seq, place);
    CREATE VIRTUAL TABLE words USING fts5(text, content='', columnsize=0, detail=none, tokenize='ascii')
    """,
    # When messages could not be kept.
    """
    CREATE TABLE gaps (
        since INTEGER NOT NULL,
        until INTEGER NOT NULL,
        lost INTEGER NOT NULL
    )
    """,
    # Messages that came late: behind which position, and when. All others came in the order of their positions.
    """
    CREATE TABLE late (
        number INTEGER PRIMARY KEY,
        position INTEGER NOT NULL UNIQUE REFERENCES entries (position) ON DELETE CASCADE,
        behind INTEGER NOT NULL,
        arrived INTEGER NOT NULL
    );
    CREATE INDEX late_behind ON late (behind)
    """,
    reindex,
)
COLUMNS = "position, place, sort, line, seq, verb, source, account, kind, text, target, status, closed, data"
