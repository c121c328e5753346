"""Changing a file of YAML that a person wrote: its comments stay, and it is replaced whole or not at all."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

from culture.config.errors import ConfigError, Problem
from culture.lib.files import replace_file


def round_trip() -> Any:
    """What reads and writes YAML with its comments."""
    # For this alone, since it takes its time to load.
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 1 << 16
    yaml.indent(mapping=2, sequence=4, offset=2)
    return yaml


def dumped(yaml: Any, document: Any) -> str:
    """The document as text."""
    written = io.StringIO()
    yaml.dump(document, written)
    return written.getvalue()


def replace(file: Path, text: str, load: Callable[[Path], object]) -> None:
    """Whole or not at all, and only what ``load`` can read back."""
    try:
        replace_file(file, text, mode=None, check=load)
    except ConfigError as error:
        raise ConfigError([_as_of(file, problem) for problem in error.problems]) from None


def _as_of(file: Path, problem: Problem) -> Problem:
    return Problem(file, problem.line, problem.key, problem.text)
