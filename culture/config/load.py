"""Loads a configuration file into its model, with the origin of each value."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from pydantic import ValidationError

from culture.config import paths
from culture.config.errors import ConfigError, Key, Problem
from culture.config.values import Settings
from culture.config.yaml_document import Document, Value, read
from culture.protocol.vocabulary import Environment

if TYPE_CHECKING:  # importing a model is slow, and few commands need all three
    from culture.config.agents import AgentsConfig
    from culture.config.model import ServerConfig
    from culture.config.team import TeamConfig

Model = TypeVar("Model", bound=Settings)
Held = TypeVar("Held", bound=Settings, covariant=True)


@dataclass(frozen=True)
class Loaded(Generic[Held]):
    """A configuration, and where each given value comes from.

    That is ``file:line``, a command line option or an environment variable.
    """

    config: Held
    sources: Mapping[Key, str]


@dataclass(frozen=True)
class ServerOptions:
    """Settings given on the command line; None: the setting keeps the value of the file."""

    name: str | None = None
    host: str | None = None
    port: int | None = None
    data_dir: Path | None = None


def load_server(file: Path | None = None, options: ServerOptions | None = None) -> "Loaded[ServerConfig]":
    """Load the server's configuration from ``file``; None: from culture.yaml, if there is one.

    ``options`` win over the file. Raises ConfigError.
    """
    from culture.config.model import ServerConfig

    document = _read(file, paths.server_file())
    given = _apply_options(document.data, options or ServerOptions())
    sources = _sources(document) | given
    if Environment.HOME in os.environ:
        for key in ("data_dir", "accounts_file"):
            sources.setdefault((key,), f"environment {Environment.HOME}")
    return Loaded(_validate(ServerConfig, document, frozenset(given)), sources)


def load_agents(
    file: Path | None = None, backend_fields: Mapping[str, frozenset[str]] | None = None
) -> "Loaded[AgentsConfig]":
    """Load the agents' configuration from ``file``; None: from agents.yaml, if there is one.

    ``backend_fields``: the settings that only agents of a backend have, by backend. Raises ConfigError.
    """
    from culture.config.agents import AgentsConfig

    document = _read(file, paths.agents_file())
    return Loaded(_validate(AgentsConfig, document, frozenset(), backend_fields), _sources(document))


def load_team(file: Path) -> "Loaded[TeamConfig]":
    """Load a team's configuration from its file; raises ConfigError."""
    from culture.config.team import TeamConfig

    document = _read(file, file)
    return Loaded(_validate(TeamConfig, document, frozenset()), _sources(document))


def _read(file: Path | None, default: Path) -> Document:
    if file is not None and not file.exists():
        raise ConfigError([Problem(file, 0, (), "there is no such file")])
    return read(file or default)


def _sources(document: Document) -> dict[Key, str]:
    return {key: f"{document.file}:{line}" for key, line in document.lines.items()}


def _apply_options(data: dict[str, Value], options: ServerOptions) -> dict[Key, str]:
    """Write the command line options into ``data``, the values of the file.

    Returns the option for each changed key. A host or port replaces all listeners by one.
    """
    origins: dict[Key, str] = {}
    for name, value in (("name", options.name), ("data_dir", options.data_dir)):
        if value is not None:
            data[name] = value
            origins[name,] = f"option --{name.replace('_', '-')}"
    address = {key: value for key, value in (("host", options.host), ("port", options.port)) if value is not None}
    if address:
        data["listen"] = ({**_first_listener(data), **address},)
        origins |= {("listen", 0, key): f"option --{key}" for key in address}
    return origins


def _first_listener(data: Mapping[str, Value]) -> dict[str, Value]:
    match data.get("listen"):
        case (dict() as first, *_):
            return first
    return {}


def _validate(
    model: type[Model], document: Document, options: frozenset[Key], context: Mapping[str, frozenset[str]] | None = None
) -> Model:
    try:
        return model.model_validate(document.data, context=context)
    except ValidationError as error:
        from culture.config.error_messages import explain  # imported only for a file with mistakes

        raise explain(error, model, document, options) from error
