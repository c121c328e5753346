"""Reading our own JSON files: what has the wrong shape is told, what an older version wrote is brought forward."""

from collections.abc import Callable, Sequence

Json = dict[str, object]
Migration = Callable[[Json], Json]


class UnreadableJson(ValueError):
    """The file is none of ours, or not whole; the message says where."""


def forward(document: Json, migrations: Sequence[Migration]) -> Json:
    """The document in the newest schema; each migration leads from one schema to the next."""
    schema = document.pop("schema", 0)
    if not isinstance(schema, int) or schema < 0:
        raise UnreadableJson(f"schema {schema!r} is not a number")
    if schema > len(migrations):
        raise UnreadableJson(f"it has schema {schema}, written by a newer culture; this one knows {len(migrations)}")
    for migrate in migrations[schema:]:
        document = migrate(document)
    return document


def refuse_unknown(item: Json, known: frozenset[str]) -> None:
    """What we do not know is refused, since writing the file would lose it."""
    if unknown := item.keys() - known:
        raise UnreadableJson(f"nothing is known about {', '.join(sorted(unknown))}")


def mapping(value: object) -> Json:
    """A JSON object."""
    if not isinstance(value, dict):
        raise UnreadableJson(f"expected a mapping, found {type(value).__name__}")
    return value


def items(value: object) -> list[object]:
    """A JSON array."""
    if not isinstance(value, list):
        raise UnreadableJson(f"expected a list, found {type(value).__name__}")
    return value


def text(value: object) -> str:
    """A JSON string."""
    if not isinstance(value, str):
        raise UnreadableJson(f"expected text, found {type(value).__name__}")
    return value


def number(value: object) -> float:
    """A JSON number that can be a time or a count."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
        raise UnreadableJson(f"expected a number, found {value!r}")
    return value
