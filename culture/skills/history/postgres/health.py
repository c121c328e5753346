"""Is the history whole? Everything is looked through."""

from collections.abc import AsyncGenerator

from culture.skills.history.entry import Sort
from culture.skills.history.postgres.driver import Connection
from culture.skills.history.postgres.upkeep import AT_ONCE, LONG
from culture.skills.history.postgres.wording import words_of

_UNKNOWN = "SELECT count(*) FROM history_entries e LEFT JOIN history_{table} x ON x.id = e.{column} WHERE x.id IS NULL"
_TEXTS = "SELECT position, sort, place, text, tsvector_to_array(words) FROM history_entries ORDER BY position"


async def problems(connection: Connection) -> AsyncGenerator[list[str], None]:
    """What is wrong, some at a time: with what belongs together, with the words that messages are found by."""
    for column, table in (("place", "places"), ("line", "lines")):
        count = await connection.fetchval(_UNKNOWN.format(table=table, column=column), timeout=LONG)
        if count:
            yield [f"{count} entries whose {column} is unknown"]
    async with connection.transaction(readonly=True):
        cursor = await connection.cursor(_TEXTS, timeout=LONG)
        while rows := await cursor.fetch(AT_ONCE, timeout=LONG):
            yield [f"{row[0]} is not found by its words" for row in rows if not _is_indexed(*row[1:])]


def _is_indexed(sort: int, place: int, text: str, words: list[str] | None) -> bool:
    if sort != Sort.MESSAGE:
        return words is None
    return words is not None and set(words) == set(words_of(place, text).split(" "))
