"""The tables of the PostgreSQL store, step by step from the first schema on."""

from collections.abc import Awaitable, Callable, Sequence

from culture.server.database import TooNew
from culture.skills.history.postgres.driver import Connection
from culture.skills.history.postgres.reindex import reindex
from culture.skills.history.store import Misconfigured

Step = str | Callable[[Connection], Awaitable[None]]
"""One change of the schema: SQL, or a function that makes it."""

STEPS: tuple[Step, ...] = (
    # Positions are times in microseconds with room for ties. ``words`` is what a message is found by: its words and
    # one that stands for its place; how often each occurs is nothing the planner must know.
    """
    CREATE TABLE history_places (
        id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        key text NOT NULL UNIQUE,
        name text NOT NULL,
        one text NOT NULL DEFAULT '',
        other text NOT NULL DEFAULT '',
        one_nick text NOT NULL DEFAULT '',
        other_nick text NOT NULL DEFAULT ''
    );
    CREATE INDEX history_places_of_one ON history_places (one) WHERE one <> '';
    CREATE INDEX history_places_of_other ON history_places (other) WHERE other <> '';
    CREATE TABLE history_lines (
        id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        origin text NOT NULL,
        epoch text NOT NULL,
        UNIQUE (origin, epoch)
    );
    CREATE TABLE history_entries (
        position bigint PRIMARY KEY,
        seq bigint NOT NULL,
        place integer NOT NULL,
        line integer NOT NULL,
        sort smallint NOT NULL,
        closed boolean NOT NULL,
        verb text NOT NULL,
        source text NOT NULL,
        account text,
        kind text NOT NULL,
        text text NOT NULL,
        target text NOT NULL,
        status text NOT NULL,
        data text NOT NULL,
        words tsvector
    );
    ALTER TABLE history_entries ALTER COLUMN words SET STATISTICS 0;
    CREATE INDEX history_entries_in_place ON history_entries (place, sort, position);
    CREATE UNIQUE INDEX history_entries_by_id ON history_entries (line, seq, place);
    CREATE INDEX history_entries_by_word ON history_entries USING gin (words) WITH (gin_pending_list_limit = 512);
    CREATE TABLE history_gaps (
        since bigint NOT NULL,
        until bigint NOT NULL,
        lost bigint NOT NULL
    );
    """,
    # Which server wrote an entry (0: from before this was known), and what came late to which: behind which position,
    # and when. What another server wrote came late.
    """
    CREATE TABLE history_writers (
        id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        name text NOT NULL UNIQUE
    );
    ALTER TABLE history_entries ADD COLUMN writer integer NOT NULL DEFAULT 0;
    CREATE TABLE history_late (
        number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        writer integer NOT NULL,
        position bigint NOT NULL REFERENCES history_entries ON DELETE CASCADE,
        behind bigint NOT NULL,
        arrived bigint NOT NULL,
        UNIQUE (position, writer)
    );
    CREATE INDEX history_late_behind ON history_late (writer, behind, number);
    """,
    reindex,
)

_TURN = 0x63756C74  # the advisory lock of whoever makes the steps
_ENCODING = "UTF8"


async def migrate(connection: Connection, steps: Sequence[Step] = STEPS) -> None:
    """Make the steps that this database has not seen, all or none; of several servers, one at a time."""
    encoding = await connection.fetchval("SHOW server_encoding")
    if encoding != _ENCODING:
        raise Misconfigured(f"the database is in {encoding}: make one with the encoding {_ENCODING}")
    async with connection.transaction():
        await connection.execute(f"SELECT pg_advisory_xact_lock({_TURN}, 0)")
        done = await _version(connection)
        if done > len(steps):
            raise TooNew(f"schema {done}, and this program knows {len(steps)}: use the newer version of culture")
        for step in steps[done:]:
            await (connection.execute(step) if isinstance(step, str) else step(connection))
        if done < len(steps):
            await connection.execute("UPDATE history_schema SET version = $1", len(steps))


async def _version(connection: Connection) -> int:
    """How many steps the database has seen."""
    if await connection.fetchval("SELECT to_regclass('history_schema')") is None:
        await connection.execute("CREATE TABLE history_schema (version integer NOT NULL)")
        await connection.execute("INSERT INTO history_schema VALUES (0)")
    return int(await connection.fetchval("SELECT version FROM history_schema"))
