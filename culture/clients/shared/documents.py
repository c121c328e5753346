"""The YAML files that backends have beside agents.yaml; mistakes are told with file, line and remedy."""

from pathlib import Path

from culture.clients.shared.errors import WrongConfiguration
from culture.config import yaml_document
from culture.config.errors import ConfigError, Key, Problem
from culture.config.yaml_document import Document

__all__ = ["Document", "Key", "read", "wrong"]


def read(file: Path) -> Document:
    """What a file says, with the lines it says it on; one that is missing is wrong, too."""
    if not file.is_file():
        raise WrongConfiguration(str(Problem(file, 0, (), "there is no such file", "correct the path or write it")))
    try:
        return yaml_document.read(file)
    except ConfigError as error:
        raise WrongConfiguration(str(error)) from error


def wrong(source: Document, key: Key, text: str, hint: str = "") -> WrongConfiguration:
    """A mistake at a key of a file."""
    return WrongConfiguration(str(Problem(source.file, source.line(key), key, text, hint)))
