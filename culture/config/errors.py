"""Errors in a configuration file, each with its place and a hint how to fix it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

Key = tuple[str | int, ...]


def dotted(key: Key) -> str:
    """Return the key of a setting as people write it, such as ``listen[0].port``."""
    text = ""
    for step in key:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


@dataclass(frozen=True)
class Problem:
    """A mistake in a configuration file: its line, key, text and hint; line 0 stands for none."""

    file: Path | None
    line: int
    key: Key
    text: str
    hint: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.file and self.line else str(self.file or "command line")
        parts = [place, dotted(self.key), self.text]
        text = ": ".join(part for part in parts if part)
        return f"{text} ({self.hint})" if self.hint else text


class ConfigError(Exception):
    """The configuration cannot be used; ``problems`` has every mistake found."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = tuple(problems)
