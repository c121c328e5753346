"""docs/reference/configuration.md: every setting with its kind and default, from the models that read the files."""

import re
import types
import typing
from collections.abc import Iterator
from pathlib import Path, PurePath

from annotated_types import Ge, Gt, Le
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from culture.config.agents import AgentsConfig
from culture.config.introspect import block, is_secret
from culture.config.model import ServerConfig
from culture.config.team import TeamConfig
from culture.config.values import seconds
from tools.site.nav import ROOT

PAGE = ROOT / "docs" / "reference" / "configuration.md"
_FILES: tuple[tuple[str, type[BaseModel], str, str], ...] = (
    ("culture.yaml", ServerConfig, "../server/configuration.md", "the server; it has what each setting means"),
    ("agents.yaml", AgentsConfig, "../clients/configuration.md", "agents, likewise"),
    ("team.yaml", TeamConfig, "../team/configuration.md", "a team, likewise"),
)
_HEAD = """# Every setting

Made by `make docs` from the models that read the files: do not edit. What a setting means is on the page that each
part begins with. A **duration** is a number of seconds or a text such as `30s`, `8h`; `[]` is an entry of a list.
`culture server config` shows the values of a server that runs, and where each came from.
"""
_UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "m"), (1.0, "s"))


def text() -> str:
    """The page as it should be."""
    parts = [_HEAD]
    for name, model, page, what in _FILES:
        parts.append(f"## {name}\n\n[{Path(page).parent.name.capitalize()}]({page}): the settings of {what}.\n")
        parts.append("| Key | Kind | Default |\n|---|---|---|")
        parts += [f"| `{key}` | {_kind(field)} | {default} |" for key, field, default in fields(model)]
        parts.append("")
    return "\n".join(parts)


def write() -> None:
    """Bring the page up to date."""
    PAGE.parent.mkdir(exist_ok=True)
    if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text():
        PAGE.write_text(text(), encoding="utf-8")


def fields(
    model: type[BaseModel], prefix: str = "", said: BaseModel | None = None
) -> Iterator[tuple[str, FieldInfo, str]]:
    """Every setting of a file, as ``limits.nick_length`` or ``listen[].port``, with its default.

    ``said`` is what the block that it is part of has where nothing is written.
    """
    for name, field in model.model_fields.items():
        key = f"{prefix}{field.alias or name}"
        inner = block(field)
        many = "[]" if typing.get_origin(field.annotation) in (tuple, dict) else ""
        if inner is None:
            yield key, field, _default(field, name, said)
        else:
            default = getattr(said, name) if said is not None else field.get_default(call_default_factory=True)
            yield from fields(inner, f"{key}{many}.", default if isinstance(default, BaseModel) else None)


def _kind(field: FieldInfo) -> str:
    found = "secret" if is_secret(field) else _named(field.annotation, field.metadata)
    return found.replace("|", "\\|")


def _named(annotation: object, metadata: typing.Iterable[object] = ()) -> str:
    """A kind in words."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _named(arguments[0], [*arguments[1:], *metadata])
    if origin is typing.Literal:
        return ", ".join(f"`{each}`" for each in arguments)
    if origin in (types.UnionType, typing.Union):
        return " or ".join(dict.fromkeys(_named(each, metadata) for each in arguments if each is not type(None)))
    if origin in (tuple, list, frozenset, set):
        return f"list of {_named(arguments[0])}"
    if isinstance(origin, type) and len(arguments) == 2:
        return "map"
    if annotation is float and any(getattr(each, "func", None) is seconds for each in metadata):
        return "duration"
    return f"{_plain(annotation)}{_bounds(metadata)}"


def _plain(annotation: object) -> str:
    if isinstance(annotation, type) and issubclass(annotation, PurePath):
        return "path"
    known: dict[object, str] = {bool: "yes or no", int: "number", float: "number", str: "text"}
    return known.get(annotation, "text")


def _bounds(metadata: typing.Iterable[object]) -> str:
    words = []
    for each in _flat(metadata):
        match each:
            case Ge(ge=least):
                words.append(f"at least {least}")
            case Gt(gt=below):
                words.append(f"more than {below}")
            case Le(le=most):
                words.append(f"at most {most}")
    return f", {', '.join(words)}" if words else ""


def _flat(metadata: typing.Iterable[object]) -> Iterator[object]:
    for each in metadata:
        yield from _flat(each.metadata) if isinstance(each, FieldInfo) else (each,)


def _default(field: FieldInfo, name: str, said: BaseModel | None) -> str:
    if said is not None:
        return _shown(getattr(said, name), _named(field.annotation, field.metadata))
    if field.is_required():
        return "must be said"
    if field.default_factory is not None or field.default is PydanticUndefined:
        return "see the page" if not _is_empty(field) else "empty"
    return _shown(field.default, _named(field.annotation, field.metadata))


def _is_empty(field: FieldInfo) -> bool:
    return field.default_factory in (dict, list, tuple, set, frozenset)


def _shown(value: object, kind: str) -> str:
    if value is None or value == "":
        return "not set"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if kind == "duration" and isinstance(value, float):
        size, unit = next((pair for pair in _UNITS if value % pair[0] == 0), (1.0, "s"))
        return f"`{value / size:g}{unit}`"
    if isinstance(value, tuple | list | frozenset):
        return ", ".join(f"`{each}`" for each in value) or "empty"
    return f"`{re.sub(r'[|`]', ' ', str(value))}`"
