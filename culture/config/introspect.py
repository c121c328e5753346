"""Introspection of the configuration models: which settings exist, which hold secrets."""

import typing
from collections.abc import Iterator

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from culture.config.errors import Key
from culture.config.values import Hidden


def keys(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Yield the key of every setting of a model, such as ``limits.nick_length``.

    Keys within a list have ``[]``, as ``listen[].port``. ``prefix`` is put before each key.
    """
    for name, field in model.model_fields.items():
        inner = block(field)
        many = "[]" if typing.get_origin(field.annotation) in (tuple, dict) else ""
        if inner is None:
            yield prefix + name
        else:
            yield from keys(inner, f"{prefix}{name}{many}.")


def block(field: FieldInfo) -> type[BaseModel] | None:
    """Return the model of the block or blocks that a field holds; None for a plain value."""
    return next((kind for kind in _parts(field.annotation) if _is_block(kind)), None)


def is_secret(field: FieldInfo) -> bool:
    """Return whether the field's value is a secret, which must not be displayed."""
    return any(isinstance(part, Hidden) for part in (*field.metadata, *_parts(field.annotation)))


def block_at(model: type[BaseModel], key: Key) -> type[BaseModel] | None:
    """Return the model of the settings block at a key such as ``limits``; None if none is there."""
    here: type[BaseModel] | None = model
    for step in key:
        if here is not None and isinstance(step, str):
            field = here.model_fields.get(step)
            here = block(field) if field else None
    return here


def _is_block(kind: object) -> typing.TypeGuard[type[BaseModel]]:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _parts(annotation: object) -> Iterator[object]:
    yield annotation
    for part in typing.get_args(annotation):
        yield from _parts(part)
