"""The step of the schema from words that had invisible characters in them to words without."""

from culture.skills.history.entry import Sort
from culture.skills.history.postgres.driver import Connection
from culture.skills.history.postgres.wording import words_of
from culture.skills.history.words import plain

_AT_ONCE = 1000
_LONG = 3600.0
_TEXTS = (
    "SELECT position, place, text FROM history_entries"
    " WHERE sort = $1 AND position > $2 AND text COLLATE \"C\" ~ '[^ -~]' ORDER BY position LIMIT $3"
)
_UPDATE = "UPDATE history_entries SET words = $2::text::tsvector WHERE position = $1 AND words <> $2::text::tsvector"


async def reindex(connection: Connection) -> None:
    """Index the messages anew that have something in them that nobody sees; all others have the words they had."""
    last = -1
    while rows := await connection.fetch(_TEXTS, Sort.MESSAGE, last, _AT_ONCE, timeout=_LONG):
        changed = (row for row in rows if plain(row[2]) != row[2])
        words = [(position, words_of(place, text)) for position, place, text in changed]
        if words:
            await connection.executemany(_UPDATE, words, timeout=_LONG)
        last = rows[-1][0]
