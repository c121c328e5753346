"""Schema of the index's SQLite file, as a list of migrations."""

from culture.server.database import Step

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
