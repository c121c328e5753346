"""Numbers for what entries name again and again: places, and lines of ids."""

from collections.abc import Iterable, Sequence

from culture.skills.history.entry import Entry, party
from culture.skills.history.postgres.driver import Connection

_FIND_PLACES = "SELECT key, id, one_nick, other_nick FROM history_places WHERE key = ANY($1::text[])"
_MAKE_PLACES = (
    "INSERT INTO history_places (key, name, one, other, one_nick, other_nick)"
    " SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[])"
    " ON CONFLICT DO NOTHING"
)
_RENAME = (
    "UPDATE history_places p SET one_nick = t.one_nick, other_nick = t.other_nick"
    " FROM unnest($1::text[], $2::text[], $3::text[]) AS t (key, one_nick, other_nick) WHERE p.key = t.key"
)
_FIND_LINES = (
    "SELECT origin, epoch, id FROM history_lines"
    " WHERE (origin, epoch) IN (SELECT * FROM unnest($1::text[], $2::text[]))"
)
_MAKE_LINES = (
    "INSERT INTO history_lines (origin, epoch) SELECT * FROM unnest($1::text[], $2::text[]) ON CONFLICT DO NOTHING"
)

Place = tuple[str, str, str, str, str, str]
"""Key, name, and of a conversation the two parties and their nicks."""


class Naming:
    """The numbers of a batch. Lines keep theirs; what a place is called, another server may have changed."""

    def __init__(self) -> None:
        self.lines: dict[tuple[str, str], int] = {}
        self.places: dict[str, int] = {}

    def forget(self) -> None:
        """Numbers may never have been committed."""
        self.lines.clear()

    async def learn(self, connection: Connection, entries: Sequence[Entry]) -> None:
        """Find the numbers of all that these entries name, and give numbers to what is new."""
        unknown = sorted({(entry.origin, entry.epoch) for entry in entries} - self.lines.keys())
        if unknown:
            await self._learn_lines(connection, unknown)
        await self._learn_places(connection, _places(entries))

    async def _learn_lines(self, connection: Connection, unknown: list[tuple[str, str]]) -> None:
        arrays = tuple(zip(*unknown, strict=True))
        await connection.execute(_MAKE_LINES, *arrays)
        for origin, epoch, number in await connection.fetch(_FIND_LINES, *arrays):
            self.lines[origin, epoch] = number

    async def _learn_places(self, connection: Connection, wanted: dict[str, Place]) -> None:
        found = {row[0]: row for row in await connection.fetch(_FIND_PLACES, list(wanted))}
        new = [wanted[key] for key in sorted(wanted.keys() - found.keys())]
        if new:
            await connection.execute(_MAKE_PLACES, *zip(*new, strict=True))
            found = {row[0]: row for row in await connection.fetch(_FIND_PLACES, list(wanted))}
        renamed = [
            (key, *wanted[key][4:]) for key, row in sorted(found.items()) if _is_other(wanted[key][4:], tuple(row)[2:])
        ]
        if renamed:
            await connection.execute(_RENAME, *zip(*renamed, strict=True))
        self.places = {key: row[1] for key, row in found.items()}


def _is_other(nicks: tuple[str, ...], known: tuple[str, ...]) -> bool:
    return all(nicks) and nicks != known


def _places(entries: Iterable[Entry]) -> dict[str, Place]:
    """The places of these; a conversation with the nicks that the two have by the last of them."""
    found: dict[str, Place] = {}
    for entry in entries:
        one, _, other = entry.place.partition(" ")
        if not other:
            found.setdefault(entry.place, (entry.place, entry.target, "", "", "", ""))
        elif entry.nick or entry.place not in found:
            sender = party(entry.account, entry.nick)
            nicks = (entry.nick, entry.target) if sender == one else (entry.target, entry.nick)
            found[entry.place] = (entry.place, "", one, other, *nicks)
    return found
