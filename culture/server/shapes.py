"""Validation of our own JSON files: types with clear errors, migration of older schemas."""

from collections.abc import Callable, Sequence

Json = dict[str, object]
Migration = Callable[[Json], Json]


class UnreadableJson(ValueError):
    """A JSON file is not ours or damaged; the exception's text says where."""


def forward(document: Json, migrations: Sequence[Migration]) -> Json:
    """Return a JSON document in the newest schema.

    ``migrations``: functions that each lead from one schema to the next, from 0 on.
    """
    schema = document.pop("schema", 0)
    if not isinstance(schema, int) or schema < 0:
        raise UnreadableJson(f"schema {schema!r} is not a number")
    if schema > len(migrations):
        raise UnreadableJson(f"it has schema {schema}, written by a newer culture; this one knows {len(migrations)}")
    for migrate in migrations[schema:]:
        document = migrate(document)
    return document


def refuse_unknown(item: Json, allowed: frozenset[str]) -> None:
    """Raise UnreadableJson for keys of ``item`` not allowed: writing the file would lose them."""
    if unknown := item.keys() - allowed:
        raise UnreadableJson(f"nothing is known about {', '.join(sorted(unknown))}")


def mapping(value: object) -> Json:
    """Return the value unchanged if it is a JSON object; else raise UnreadableJson."""
    if not isinstance(value, dict):
        raise UnreadableJson(f"expected a mapping, found {type(value).__name__}")
    return value


def items(value: object) -> list[object]:
    """Return the value unchanged if it is a JSON array; else raise UnreadableJson."""
    if not isinstance(value, list):
        raise UnreadableJson(f"expected a list, found {type(value).__name__}")
    return value


def text(value: object) -> str:
    """Return the value unchanged if it is a JSON string; else raise UnreadableJson."""
    if not isinstance(value, str):
        raise UnreadableJson(f"expected text, found {type(value).__name__}")
    return value


def number(value: object) -> float:
    """Return the value unchanged if it is a number from 0 to 1e12; else raise UnreadableJson."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
        raise UnreadableJson(f"expected a number, found {value!r}")
    return value
