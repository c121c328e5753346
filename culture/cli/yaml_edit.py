"""Changes a YAML file that a person wrote: keeps comments, replaces the file atomically."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

from culture.config.errors import ConfigError, Problem
from culture.lib.files import replace_file


def yaml_editor() -> Any:
    """Return a ruamel.yaml parser and writer that keeps comments."""
    # Imported here because it takes long to load.
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 1 << 16
    yaml.indent(mapping=2, sequence=4, offset=2)
    return yaml


def dump(yaml: Any, document: Any) -> str:
    """Return a YAML document as text; ``yaml``: the editor that loaded it."""
    text = io.StringIO()
    yaml.dump(document, text)
    return text.getvalue()


def replace(file: Path, text: str, load: Callable[[Path], object]) -> None:
    """Replace a YAML file atomically by ``text`` if ``load`` accepts it; keep the file's mode.

    ConfigError is raised, and nothing changed, if ``load`` refuses the new file.
    """
    try:
        replace_file(file, text, mode=None, check=load)
    except ConfigError as error:
        raise ConfigError([_as_of(file, problem) for problem in error.problems]) from None


def _as_of(file: Path, problem: Problem) -> Problem:
    return Problem(file, problem.line, problem.key, problem.text)
