"""Schema of the ledger's SQLite file, as a list of migrations."""

from culture.server.database import Step

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
