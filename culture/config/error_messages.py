"""Explains validation errors for the person who edits the file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from culture.config.errors import ConfigError, Key, Problem
from culture.config.introspect import block_at, is_secret, keys
from culture.config.values import Misfit, Settings
from culture.config.yaml_document import Document, unquoted
from culture.protocol.names import nearest

# The error of a default that depends on other settings, when one of those is wrong.
_NOT_REACHED = "default_factory_not_called"
_FEW = 2
"""Most places of a key that a hint names."""

_EXPECTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "model_type": "a block of settings",
    "model_attributes_type": "a block of settings",
    "path_type": "a path",
    "is_instance_of": "a path",
}
_BOUNDS = {
    "greater_than_equal": "must be at least {ge}",
    "greater_than": "must be more than {gt}",
    "less_than_equal": "must be at most {le}",
    "finite_number": "must be a finite number",
    "string_too_short": "must not be empty",
    "missing": "is missing and has no default",
    "extra_forbidden": "unknown key",
}


Block = TypeVar("Block", bound=Settings)


def checked(block: type[Block], values: Mapping[str, Any]) -> Block:
    """Return a block of settings made from these values, after validating them.

    Raises Misfit, which names the first wrong key and its mistake.
    """
    try:
        return block.model_validate(values)
    except ValidationError as error:
        problem = explain(error, block, Document(Path(), ""), frozenset()).problems[0]
        raise Misfit(f"{problem.text} ({problem.hint})" if problem.hint else problem.text, *problem.key) from error


def explain(error: ValidationError, model: type[BaseModel], document: Document, options: frozenset[Key]) -> ConfigError:
    """Return the mistakes that pydantic found as a ConfigError, each with file and line.

    ``model``: the model that refused the ``document``; ``options``: the keys that were given on the command line, not
    in the file.
    """
    details = [detail for detail in error.errors(include_url=False) if detail["type"] != _NOT_REACHED]
    problems = [_problem(detail, model, document, options) for detail in details]
    return ConfigError(sorted(problems, key=lambda problem: problem.line))


def _problem(detail: ErrorDetails, model: type[BaseModel], document: Document, options: frozenset[Key]) -> Problem:
    cause = detail.get("ctx", {}).get("error")
    key: Key = detail["loc"] + (cause.key if isinstance(cause, Misfit) else ())
    line = 0 if key in options else document.line(key)
    file = None if key in options else document.file
    if detail["type"] in _EXPECTED and _is_hidden(model, key):
        # Neither the value nor its line belongs in a log.
        text = f"expected {_EXPECTED[detail['type']]}, found something else"
        return Problem(file, line, key, text, "put it in quotes")
    source = "" if _is_hidden(model, key) else document.source(line)
    return Problem(file, line, key, _text(detail), _hint(detail, key, model, source))


def _is_hidden(model: type[BaseModel], key: Key) -> bool:
    here = block_at(model, key[:-1])
    field = here.model_fields.get(str(key[-1])) if here is not None and key else None
    return field is not None and is_secret(field)


def _text(detail: ErrorDetails) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "value_error":
        return str(context["error"])
    if kind == "literal_error":
        return f"expected {context['expected']}, found {_described(detail['input'])}"
    if kind in _EXPECTED:
        return f"expected {_EXPECTED[kind]}, found {_described(detail['input'])}"
    return _BOUNDS[kind].format(**context) if kind in _BOUNDS else detail["msg"]


def _described(value: object) -> str:
    match value:
        case None:
            return "nothing"
        case str():
            return f"the text {value!r}"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return f"the number {value}"
        case tuple():
            return "a list"
        case dict():
            return "a block of settings"
    return f"{type(value).__name__} {value}"


def _hint(detail: ErrorDetails, key: Key, model: type[BaseModel], source: str) -> str:
    kind, value = detail["type"], detail["input"]
    if kind == "extra_forbidden":
        return _nearest_key(str(key[-1]), block_at(model, key[:-1]), model)
    if value is None and "#" in source:
        return unquoted(source)
    if value is None and kind in _EXPECTED:
        return "give it a value or take the key away"
    if kind == "literal_error" and isinstance(value, str):
        close = nearest(value, detail["ctx"]["expected"].replace("'", "").replace(" or ", ", ").split(", "))
        return f"did you mean {close}?" if close else ""
    if kind in ("int_type", "float_type") and isinstance(value, str) and value.isdecimal():
        return "leave out the quotes"
    if kind == "tuple_type":
        return "begin each entry with a hyphen and a space"
    return "put it in quotes" if kind == "string_type" and not isinstance(value, tuple | dict) else ""


def _nearest_key(name: str, here: type[BaseModel] | None, model: type[BaseModel]) -> str:
    if here is None:
        return ""
    elsewhere = [key for key in keys(model) if key.rpartition(".")[2] == name]
    close = " or ".join(elsewhere) if 0 < len(elsewhere) <= _FEW else nearest(name, here.model_fields)
    return f"did you mean {close}?" if close else f"the keys here are: {', '.join(here.model_fields)}"
