"""The configuration in force, key by key, with the origin of each value."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from culture.config.errors import Key, dotted
from culture.config.introspect import is_secret
from culture.config.load import Loaded
from culture.config.values import Settings

HIDDEN = "******"
_PASSWORD = re.compile(r"(://[^\s/:@]*:)[^\s/@]+@")  # as in postgresql://user:password@host


class SettingRow(NamedTuple):
    """A setting for display: its key, its value, and where the value comes from."""

    key: str
    value: str
    source: str


def effective(loaded: Loaded[Settings]) -> list[SettingRow]:
    """Return every setting with its value and the value's origin; secrets are shown as stars."""
    return list(_rows(loaded.config, (), loaded.sources))


def has_secrets(loaded: Loaded[Settings]) -> bool:
    """Return whether any setting of the configuration is a secret, which is displayed as stars."""
    return any(HIDDEN in row.value and row.source != "default" for row in effective(loaded))


def _rows(block: BaseModel, key: Key, sources: Mapping[Key, str]) -> Iterator[SettingRow]:
    for name, field in type(block).model_fields.items():
        yield from _row(getattr(block, name), field, (*key, name), sources)


def _row(value: object, field: FieldInfo, key: Key, sources: Mapping[Key, str]) -> Iterator[SettingRow]:
    if isinstance(value, BaseModel):
        yield from _rows(value, key, sources)
    elif isinstance(value, tuple) and value and isinstance(value[0], BaseModel):
        for number, item in enumerate(value):
            yield from _rows(item, (*key, number), sources)
    else:
        yield SettingRow(dotted(key), _displayed(value, is_secret(field)), sources.get(key, "default"))


def _displayed(value: object, secret: bool) -> str:
    match value:
        case None:
            return "(not set)"
        case dict() if not value:
            return "(none)"
        case _ if secret:
            return HIDDEN
        case ():
            return "(none)"
        case tuple():
            return ", ".join(map(str, value))
        case bool():
            return "true" if value else "false"
        case float():
            return f"{value:g}"
        case str() | Path():
            return _PASSWORD.sub(rf"\1{HIDDEN}@", str(value)).replace("\n", "\\n") or '""'
    return str(value)
