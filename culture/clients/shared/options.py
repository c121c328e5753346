"""What a backend's part of the configuration says, and what is said of that which cannot be."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from culture.clients.shared.errors import WrongConfiguration

Value = TypeVar("Value", bound=str)


def chosen(options: Mapping[str, object], name: str, known: Sequence[Value], default: Value | None = None) -> Value:
    """One of the values that a setting has; without a default, the first is what it is when nothing is said."""
    wanted = options.get(name) or default or known[0]
    for each in known:
        if each == wanted:
            return each
    raise WrongConfiguration(f"{name}: {wanted!r} is none of {', '.join(known)}")


def check_directory(directory: Path) -> None:
    """Whether an agent can work there at all."""
    if not directory.is_dir():
        raise WrongConfiguration(f"directory: {directory} is no directory")
