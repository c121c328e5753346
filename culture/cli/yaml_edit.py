"""Changing a file of YAML that a person wrote: its comments stay, and it is replaced whole or not at all."""

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from culture.config import paths
from culture.config.errors import ConfigError, Problem


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
    new = file.with_name(f".{file.name}.new")
    new.unlink(missing_ok=True)
    try:
        with open(paths.open_private(new, os.O_WRONLY | os.O_EXCL), "w", encoding="utf-8") as target:
            target.write(text)
        if file.exists():
            new.chmod(file.stat().st_mode & 0o777)
        load(new)
        os.replace(new, file)
    except ConfigError as error:
        raise ConfigError([_as_of(file, problem) for problem in error.problems]) from None
    finally:
        new.unlink(missing_ok=True)


def _as_of(file: Path, problem: Problem) -> Problem:
    return Problem(file, problem.line, problem.key, problem.text)
