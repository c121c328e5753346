"""What is wrong with a configuration file, said so that it can be put right."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

Key = tuple[str | int, ...]


def dotted(key: Key) -> str:
    """A key as people write it: ``listen[0].port``."""
    text = ""
    for step in key:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


@dataclass(frozen=True)
class Problem:
    """One mistake: where it is, what it is, and what to do about it. Line 0 means no particular line."""

    file: Path | None
    line: int
    key: Key
    text: str
    hint: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.file and self.line else str(self.file or "command line")
        parts = [place, dotted(self.key), self.text]
        said = ": ".join(part for part in parts if part)
        return f"{said} ({self.hint})" if self.hint else said


class ConfigError(Exception):
    """The configuration cannot be used; every problem found is listed."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = tuple(problems)
